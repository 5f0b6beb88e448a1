//go:build unix

package worker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"

	"millwright/runs/wire"
	"millwright/runs/worker/preset"
)

// leftFile is a file that a harness left for people.
type leftFile struct {
	wire.Artifact // upload fills in Size and Digest
	content       *os.File
}

// upload sends what the harness of an attempt left. The server shows it once the execution has ended. What cannot be
// stored becomes an event: the run goes on.
func (j *job) upload(ctx context.Context, rec *recorder, files []leftFile) {
	for i, f := range files {
		err := f.measure()
		if err == nil {
			err = j.worker.cfg.Client.PutArtifact(ctx, j.order, i, f.Artifact, f.content)
		}
		if errors.Is(err, wire.ErrLost) {
			return
		}
		if err != nil {
			j.log.Warn("worker: store an artifact", "path", f.Path, "error", err)
			rec.Add(preset.Event("artifact_refused", map[string]string{
				"path": f.Path, "repository": f.Repository, "reason": underlying(err).Error(),
			}))
		}
	}
}

// measure fills in the size and digest of the content, and goes back to its start.
func (f *leftFile) measure() error {
	sum := sha256.New()
	size, err := io.Copy(sum, f.content)
	if err != nil {
		return err
	}

	f.Size, f.Digest = size, hex.EncodeToString(sum.Sum(nil))
	_, err = f.content.Seek(0, io.SeekStart)
	return err
}
