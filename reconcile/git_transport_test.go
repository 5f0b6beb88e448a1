package reconcile

import "testing"

// TestGitSessionsFollowEachOther connects again as soon as a connection stands.
func TestGitSessionsFollowEachOther(t *testing.T) {
	r, err := newRemote(GitConfig{URL: "http://127.0.0.1/r.git"}) // asked for nothing, and so not connected to
	if err != nil {
		t.Fatal(err)
	}

	for n := range 50_000 {
		s, err := r.session(t.Context())
		if err != nil {
			t.Fatalf("session %d: %v", n+1, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
