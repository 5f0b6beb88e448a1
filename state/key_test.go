package state_test

import (
	"errors"
	"slices"
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

func TestKeys(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		first, err := s.Bootstrap(ctx, "mw_bootstrap")
		if err != nil || !first {
			t.Fatalf("bootstrap = %t, %v", first, err)
		}
		if again, err := s.Bootstrap(ctx, "mw_other"); err != nil || again {
			t.Errorf("second bootstrap = %t, %v", again, err)
		}
		k, secret, err := s.CreateKey(ctx, "ci", state.RoleRunner, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := s.KeyBySecret(ctx, secret); err != nil || got.UID != k.UID || got.Role != state.RoleRunner {
			t.Errorf("key = %+v, %v", got, err)
		}
		past := time.Now().Add(-time.Second)
		_, expired, err := s.CreateKey(ctx, "old", state.RoleAdmin, &past)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.RevokeKey(ctx, k.UID); err != nil {
			t.Fatal(err)
		}
		for what, secret := range map[string]string{"revoked": secret, "expired": expired, "unknown": "mw_nope", "empty": ""} {
			if _, err := s.KeyBySecret(ctx, secret); !errors.Is(err, state.ErrNotFound) {
				t.Errorf("%s key: %v, want ErrNotFound", what, err)
			}
		}
		if err := s.RevokeKey(ctx, k.UID); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("revoking twice: %v", err)
		}
		all, err := s.Keys(ctx)
		if err != nil || len(all) != 3 || !slices.IsSortedFunc(all, func(a, b state.Key) int { return -1 * compare(a.UID, b.UID) }) {
			t.Errorf("keys = %+v, %v", all, err)
		}
	})
}

func compare(a, b string) int {
	if a < b {
		return -1
	}
	return 1
}

func TestRoles(t *testing.T) {
	order := []state.Role{state.RoleViewer, state.RoleRunner, state.RoleAdmin}
	for i, r := range order {
		for j, need := range order {
			if got := r.Allows(need); got != (i >= j) {
				t.Errorf("%s allows %s = %t", r, need, got)
			}
		}
		if state.RoleWorker.Allows(r) {
			t.Errorf("worker allows %s", r)
		}
	}
	if state.Role("root").Valid() || state.Role("").Allows(state.RoleViewer) {
		t.Error("an unknown role is worth something")
	}
}
