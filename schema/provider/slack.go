package provider

import "slices"

// Slack's events: https://docs.slack.dev/reference/events

func slackTable() *table {
	posted := func(types ...string) func(*body) bool {
		return func(b *body) bool { return slackMessage(b) && b.oneOf("event.channel_type", types...) }
	}
	return &table{
		provider: Slack, schemes: []string{"slack"}, title: "Slack", field: "event.type",
		events: []event{
			{name: "app_mention", on: []string{"app_mention"}, is: slackMessage, keys: slackMessageKeys()},
			{name: "message_posted", on: []string{"message"}, is: posted("channel", "group"), keys: slackMessageKeys()},
			{name: "message_dm", on: []string{"message"}, is: posted("im", "mpim"), keys: slackMessageKeys()},
			{name: "message_im", on: []string{"message"}, is: posted("im"), keys: slackMessageKeys()},
			{name: "message_mpim", on: []string{"message"}, is: posted("mpim"), keys: slackMessageKeys()},
			{
				name: "reaction_added", on: []string{"reaction_added"},
				is: func(b *body) bool { return slackEvent(b) && b.string("event.reaction") != "" },
				keys: append(slackKeys("event.item.channel"),
					key{name: "emojis", compare: emoji(), read: one("event.reaction")},
					key{name: "item_user_ids", compare: exact(), read: one("event.item_user")},
					key{name: "keywords", compare: keyword(), unread: "a reaction's payload has no text"},
				),
			},
			{
				name: "member_joined_channel", on: []string{"member_joined_channel"}, is: slackEvent,
				keys: slackKeys("event.channel"),
			},
		},
	}
}

// oneOf reports whether the string at a path is one of the words.
func (b *body) oneOf(path string, words ...string) bool {
	return slices.Contains(words, b.string(path))
}

// slackEvent reports whether a payload is an event that the app itself did not cause.
func slackEvent(b *body) bool {
	return b.string("type") == "event_callback" && b.has("event") && !slackOwn(b)
}

// slackMessage reports whether a payload is a new message of somebody else: no edit, and no deletion.
func slackMessage(b *body) bool {
	return slackEvent(b) &&
		b.oneOf("event.subtype", "", "file_share", "thread_broadcast", "me_message", "bot_message") &&
		!b.has("event.edited")
}

// slackOwn reports whether the app itself caused the event.
func slackOwn(b *body) bool {
	if app := b.string("api_app_id"); app != "" &&
		(b.string("event.app_id") == app || b.string("event.bot_profile.app_id") == app) {
		return true
	}

	user, own := b.string("event.user"), false
	eachObject(b, "authorizations", func(a *body) bool {
		own = user != "" && a.at("is_bot").Bool() && a.string("user_id") == user
		return !own
	})

	return own
}

func slackKeys(channel string) []key {
	return []key{
		{name: "channel_ids", compare: exact(), read: one(channel)},
		{name: "user_ids", compare: exact(), read: one("event.user"), must: true},
		{name: "authors", compare: exact(), read: one("event.user"), must: true},
	}
}

func slackMessageKeys() []key {
	return append(slackKeys("event.channel"), key{name: "keywords", compare: keyword(), read: one("event.text")})
}
