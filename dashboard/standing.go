package dashboard

import "millwright/state"

// standing is the condition of a factory, in a word and a sentence.
type standing struct{ Level, Word, Detail string }

func standingOf(f state.Factory) standing {
	switch {
	case f.Detached:
		return standing{"quiet", "Detached", "the settings no longer name this factory, so its webhooks answer 404"}
	case f.Pin != nil:
		return standing{"odd", "Suspended", f.PinMessage()}
	case f.Suspended:
		return standing{"odd", "Suspended", "suspended in the settings: nothing is applied"}
	}

	switch f.SyncState {
	case state.SyncApplied:
		if deaf := f.Deaf(); deaf != "" {
			return standing{"odd", "Degraded", deaf}
		}
		return standing{"good", "Applied", "the newest revision of the source is in use"}
	case state.SyncRefused:
		detail := "the source's definition has errors; the last applied one stays in use"
		if f.Applied.ID == "" {
			detail = "the source's definition has errors, and none was applied before"
		}

		return standing{"bad", "Refused", detail}

	case state.SyncFailed:
		return standing{"bad", "Source failed", "the source cannot be read; the server keeps trying"}
	}

	return standing{"busy", "Pending", "the first attempt to apply has not ended yet"}
}
