package state_test

import (
	"errors"
	"testing"
	"time"

	"millwright/state"
	"millwright/state/statetest"
)

func TestSessions(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		key, secret, err := s.CreateKey(ctx, "ada", state.RoleAdmin, nil)
		if err != nil {
			t.Fatal(err)
		}
		begin := func(k state.Key, ttl time.Duration) string {
			t.Helper()
			token, err := s.CreateSession(ctx, k.UID, ttl)
			if err != nil {
				t.Fatal(err)
			}
			return token
		}
		lives := func(token string) bool {
			t.Helper()
			k, err := s.SessionKey(ctx, token)
			if err != nil && !errors.Is(err, state.ErrNotFound) {
				t.Fatal(err)
			}
			return err == nil && k.UID != ""
		}
		one, two := begin(key, time.Hour), begin(key, time.Hour)
		if one == two || !lives(one) || !lives(two) {
			t.Errorf("two sessions of a key: %t %t", lives(one), lives(two))
		}
		if got, err := s.SessionKey(ctx, one); err != nil || got.UID != key.UID || got.Role != state.RoleAdmin {
			t.Errorf("key of the session: %+v, %v", got, err)
		}
		for name, token := range map[string]string{"empty": "", "unknown": state.NewToken(state.SessionPrefix), "the key's secret": secret, "expired": begin(key, -time.Second)} {
			if lives(token) {
				t.Errorf("%s: a session", name)
			}
		}
		if err := s.EndSession(ctx, one); err != nil || lives(one) || !lives(two) {
			t.Errorf("after the end of one: %v, %t %t", err, lives(one), lives(two))
		}
		for range 120 {
			begin(key, time.Hour)
		}
		if lives(two) {
			t.Error("the oldest of very many sessions still lives")
		}
		last := begin(key, time.Hour)
		if !lives(last) {
			t.Error("the newest session does not live")
		}
		if err := s.RevokeKey(ctx, key.UID); err != nil || lives(last) {
			t.Errorf("a session outlives its key (%v)", err)
		}
		past := time.Now().Add(-time.Second)
		expired, _, err := s.CreateKey(ctx, "expired", state.RoleViewer, &past)
		if err != nil {
			t.Fatal(err)
		}
		if lives(begin(expired, time.Hour)) {
			t.Error("a session outlives its key's expiry")
		}
		if _, err := s.CreateSession(ctx, "key_01h455vb4pex5vsknk084sn02q", time.Hour); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("session of no key: %v", err)
		}
	})
}
