package statetest

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"millwright/state"
)

// Leave sends a file as the worker of a claim does, and returns it. It is a FILE of kind file unless a says
// otherwise. Each part is sent twice, as when an answer was lost.
func Leave(t testing.TB, s *state.Store, c state.Claim, number int, a state.Artifact, content []byte) state.Artifact {
	t.Helper()
	sum := sha256.Sum256(content)
	a.Digest, a.Size = hex.EncodeToString(sum[:]), int64(len(content))
	if a.Kind == "" {
		a.Kind = state.KindFile
	}
	if err := s.DeclareArtifact(t.Context(), c, number, a); err != nil {
		t.Fatal(err)
	}

	for part := 0; part*state.ArtifactPart < len(content); part++ {
		body := content[part*state.ArtifactPart : min((part+1)*state.ArtifactPart, len(content))]
		for range 2 {
			if err := s.PutArtifactPart(t.Context(), c, number, part, body); err != nil {
				t.Fatal(err)
			}
		}
	}

	sent, err := s.SentArtifact(t.Context(), c, number)
	if err != nil {
		t.Fatal(err)
	}
	sent.MimeType, sent.Facts = a.MimeType, a.Facts
	if a.Type != "" {
		sent.Type = a.Type
	}
	if err := s.CompleteArtifact(t.Context(), c, sent); err != nil {
		t.Fatal(err)
	}
	return sent
}
