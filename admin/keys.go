package admin

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"millwright/api"
	"millwright/state"
)

// APIKey is an API key without its secret.
type APIKey struct {
	UID       string     `json:"uid" doc:"Identifier" example:"key_01h455vb4pex5vsknk084sn02q"`
	Name      string     `json:"name" doc:"Purpose of the key; for a person, the person's name"`
	Kind      string     `json:"kind" enum:"key,person" doc:"person: somebody who signs in to the dashboard by auth.login"`
	Role      string     `json:"role" enum:"planner,viewer,runner,admin,worker" doc:"planner plans; viewer also reads; runner also creates and steers runs; admin may do everything; worker executes runs and cannot use the API"`
	Factories []string   `json:"factories,omitempty" nullable:"false" doc:"UIDs of the factories that the key is limited to; absent: it is not limited"`
	CreatedAt time.Time  `json:"created_at" doc:"Time of creation"`
	ExpiresAt *time.Time `json:"expires_at" doc:"Time of expiry; null if the key does not expire"`
	RevokedAt *time.Time `json:"revoked_at" doc:"Time of revocation; null for a valid key"`
}

// CreatedAPIKey is a new API key with its secret.
type CreatedAPIKey struct {
	APIKey
	Secret string `json:"secret" doc:"The key; no other answer contains it"`
}

// ListAPIKeysResponse is a page of API keys, newest first.
type ListAPIKeysResponse struct {
	Keys     []APIKey     `json:"keys" nullable:"false" doc:"The keys, newest first, revoked ones included"`
	PageInfo api.PageInfo `json:"page_info" doc:"Whether there is another page"`
}

// CreateAPIKeyRequest asks for a new API key.
type CreateAPIKeyRequest struct {
	Name      string     `json:"name" minLength:"1" maxLength:"100" pattern:"^[^\\x00-\\x1f\\x7f]+$" patternDescription:"text without control characters" doc:"Purpose"`
	Role      string     `json:"role" enum:"planner,viewer,runner,admin,worker" doc:"Role of the key"`
	Factories []string   `json:"factories,omitempty" nullable:"false" minItems:"1" maxItems:"100" doc:"UIDs of the factories that the key is limited to; absent: it is not limited"`
	ExpiresIn *string    `json:"expires_in,omitempty" pattern:"^([0-9]{1,5}d)?([0-9]{1,7}h)?([0-9]{1,9}m)?([0-9]{1,10}s)?$" patternDescription:"a duration such as 90d, 24h or 1h30m" example:"24h" doc:"Lifetime in days, hours, minutes and seconds; absent: the key does not expire"`
	ExpiresAt *time.Time `json:"expires_at,omitempty" doc:"Time of expiry, instead of expires_in"`
}

func (s *service) registerKeys() {
	api.Handle(
		s.api,
		api.Operation(http.MethodGet, "/keys", "listKeys", state.RoleAdmin, "List the API keys"),
		s.listKeys,
	)
	api.Handle(
		s.api,
		api.Operation(http.MethodPost, "/keys", "createKey", state.RoleAdmin, "Create an API key"),
		s.createKey,
	)
	api.HandleEmpty(s.api, api.Also(api.Operation(http.MethodDelete, "/keys/{uid}", "revokeKey", state.RoleAdmin,
		"Revoke an API key at once"), http.StatusConflict), s.revokeKey)
}

func newKey(k state.Key) APIKey {
	kind := "key"
	if k.Person {
		kind = "person"
	}

	return APIKey{
		UID:       k.UID,
		Name:      k.Name,
		Kind:      kind,
		Role:      string(k.Role),
		Factories: k.Factories,
		CreatedAt: k.Created.Truncate(time.Microsecond),
		ExpiresAt: k.Expires,
		RevokedAt: k.Revoked,
	}
}

func (s *service) listKeys(ctx context.Context, in *struct{ PageQuery }) (ListAPIKeysResponse, error) {
	keys, err := s.Store.Keys(ctx)
	if err != nil {
		return ListAPIKeysResponse{}, err
	}
	rows, info, err := paginate(in.PageQuery, "keys", keys, func(k state.Key) string { return k.UID }, true)
	out := ListAPIKeysResponse{[]APIKey{}, info}
	for _, k := range rows {
		out.Keys = append(out.Keys, newKey(k))
	}
	return out, err
}

func (s *service) createKey(ctx context.Context, in *struct{ Body CreateAPIKeyRequest }) (CreatedAPIKey, error) {
	expires := in.Body.ExpiresAt
	if in.Body.ExpiresIn != nil {
		if expires != nil {
			return CreatedAPIKey{}, api.InvalidField("expires_at", "cannot be given together with expires_in")
		}

		d, err := lifetime(*in.Body.ExpiresIn)
		if err != nil {
			return CreatedAPIKey{}, err
		}

		at := time.Now().Add(d)
		expires = &at
	}

	if expires != nil {
		if !expires.After(time.Now()) || expires.Year() > 9999 {
			return CreatedAPIKey{}, api.InvalidField("expires_at", "is not a time in the future")
		}

		at := expires.UTC().Truncate(time.Microsecond)
		expires = &at
	}

	role := state.Role(in.Body.Role)
	factories, err := s.limit(ctx, in.Body.Factories)
	if err != nil {
		return CreatedAPIKey{}, err
	}

	k, secret, err := s.Store.CreateLimitedKey(ctx, in.Body.Name, role, expires, factories)
	return CreatedAPIKey{newKey(k), secret}, err
}

// limit returns the factories that a new key is limited to; nil if it is not.
func (s *service) limit(ctx context.Context, given []string) ([]string, error) {
	if given == nil {
		return nil, nil
	}
	factories := slices.Compact(slices.Sorted(slices.Values(given)))
	for _, uid := range factories {
		_, err := s.factory(ctx, uid)
		if api.IsNotFound(err) {
			return nil, api.InvalidField("factories", "factory %q does not exist", uid)
		}
		if err != nil {
			return nil, err
		}
	}

	return factories, nil
}

// lifetime parses the lifetime of a key: a Go duration, with optional leading days.
func lifetime(text string) (time.Duration, error) {
	wrong := api.InvalidField("expires_in", "%q is not a duration such as 90d, 24h or 1h30m", text)
	var d time.Duration
	if days, rest, ok := strings.Cut(text, "d"); ok {
		n, err := strconv.Atoi(days)
		if err != nil {
			return 0, wrong
		}

		d, text = time.Duration(n)*24*time.Hour, rest
	}

	if text != "" {
		more, err := time.ParseDuration(text)
		if err != nil {
			return 0, wrong
		}

		d += more
	}

	if d < time.Second {
		return 0, wrong
	}

	return d, nil
}

// revokeKey revokes a key, unless it is the last admin key: the server makes a first admin key only while
// no key exists.
func (s *service) revokeKey(ctx context.Context, in *struct {
	UID string `path:"uid" doc:"UID of the key"`
},
) error {
	keys, err := s.Store.Keys(ctx)
	if err != nil {
		return err
	}

	var revoked, others bool
	for _, k := range keys {
		live := k.Unbounded() && !k.Person && k.Live(time.Now())
		revoked = revoked || live && k.UID == in.UID
		others = others || live && k.UID != in.UID
	}

	if revoked && !others {
		return api.Problem("conflict", "this is the last admin key that works: make another one first")
	}

	return s.Store.RevokeKey(ctx, in.UID)
}
