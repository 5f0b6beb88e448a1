//go:build unix

package confine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// Named finds the account of a user.
func Named(name string) (Account, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return Account{}, fmt.Errorf("user %q does not exist on this machine", name)
	}

	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(err1, err2); err != nil {
		return Account{}, fmt.Errorf("user %q: %w", name, err)
	}

	a := Account{Name: name, UID: uint32(uid), GID: uint32(gid), Home: u.HomeDir}
	switch {
	case int(uid) == os.Getuid():
		return Account{}, fmt.Errorf(
			"user %q is the user of this process: choose another one, or say sameUser: true", name)
	case uid == 0:
		return Account{}, fmt.Errorf("user %q is root, which no other account can be protected from", name)
	case os.Getuid() != 0:
		return Account{}, fmt.Errorf(
			"only root can start commands as user %q: run this process as root, or use a container", name)
	}

	return a, nil
}

// Ranged returns the accounts of a range of user IDs, none of which may be an account of this machine. Each
// has the group of its own number.
func Ranged(text string) ([]Account, error) {
	first, last, err := Range(text)
	if err != nil {
		return nil, err
	}

	if os.Getuid() != 0 {
		return nil, fmt.Errorf(
			"only root can start commands as other users, with uidRange %q: run this process as root, or "+
				"use a container",
			text,
		)
	}

	var all []Account
	for uid := first; uid <= last; uid++ {
		number := strconv.FormatUint(uint64(uid), 10)
		if u, err := user.LookupId(number); err == nil {
			return nil, fmt.Errorf(
				"uidRange %q: user ID %s is the account %q: choose a range that no account uses",
				text,
				number,
				u.Username,
			)
		}

		all = append(all, Account{Name: number, UID: uid, GID: uid})
	}

	return all, nil
}

// Accounts gives out accounts. A worker reserves one with Take before it asks for a run, and locks it with
// Use for the run, so that an idle worker keeps no account from another worker of this machine.
type Accounts struct {
	mu      sync.Mutex
	taken   map[uint32]*flock.Flock // its lock, while it is used
	changed chan struct{}           // closed when an account is returned
}

// lockAgain is how often a lock that another worker of this machine may have is tried.
const lockAgain = 200 * time.Millisecond

// makeOwnDir makes the directory with the locks of used accounts, for all workers of this machine.
func makeOwnDir() error {
	if err := os.MkdirAll(ownDir, 0o711); err != nil {
		return err
	}

	var stat syscall.Stat_t
	if err := syscall.Lstat(ownDir, &stat); err != nil {
		return err
	}
	if int(stat.Uid) != os.Getuid() || stat.Mode&0o022 != 0 {
		return fmt.Errorf("%s must belong to this user, and nobody else may write to it", ownDir)
	}

	return nil
}

// Take waits until one account of each pool is free and takes them, all at once. One account may stand for
// several pools that have it.
func (a *Accounts) Take(ctx context.Context, pools ...[]Account) ([]Account, error) {
	for len(pools) > 0 {
		held, changed, err := a.try(pools)
		if err != nil || held != nil {
			return held, err
		}
		if err := wait(ctx, changed); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// Use locks an account that was taken, for the run that it is to execute.
func (a *Accounts) Use(ctx context.Context, account Account) error {
	for {
		lock, err := tryLock(account)
		if err != nil {
			return err
		}

		if lock != nil {
			a.mu.Lock()
			defer a.mu.Unlock()

			a.taken[account.UID] = lock
			return nil
		}

		if err := wait(ctx, nil); err != nil {
			return err
		}
	}
}

// wait waits for a change, or until it is time to try again.
func wait(ctx context.Context, changed <-chan struct{}) error {
	timer := time.NewTimer(lockAgain)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-changed:
	case <-timer.C:
	}
	return nil
}

// try takes one account of each pool, or none.
func (a *Accounts) try(pools [][]Account) (held []Account, changed <-chan struct{}, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()

	if a.changed == nil {
		a.taken, a.changed = map[uint32]*flock.Flock{}, make(chan struct{})
	}

	got := map[uint32]bool{}
	for _, pool := range pools {
		account, ok, err := a.first(pool, got)
		if err != nil || !ok {
			for _, h := range held {
				delete(a.taken, h.UID)
			}
			return nil, a.changed, err
		}

		if !got[account.UID] {
			got[account.UID] = true
			a.taken[account.UID] = nil
			held = append(held, account)
		}
	}

	return held, a.changed, nil
}

// first returns an account of the pool that is already taken here, or a free one.
func (a *Accounts) first(pool []Account, got map[uint32]bool) (Account, bool, error) {
	for _, account := range pool {
		if got[account.UID] {
			return account, true, nil
		}
	}

	for _, account := range pool {
		if _, taken := a.taken[account.UID]; taken {
			continue
		}

		lock, err := tryLock(account)
		if err != nil {
			return Account{}, false, err
		}
		if lock != nil {
			lock.Close()
			return account, true, nil
		}
	}

	return Account{}, false, nil
}

// tryLock locks an account for this machine; nil: a run of another worker has it.
func tryLock(account Account) (*flock.Flock, error) {
	if err := makeOwnDir(); err != nil {
		return nil, fmt.Errorf("lock account %s: %w", account.Name, err)
	}

	lock := flock.New(filepath.Join(ownDir, fmt.Sprintf("uid-%d.lock", account.UID)))
	ok, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock account %s: %w", account.Name, err)
	}
	if !ok {
		return nil, nil
	}

	return lock, nil
}

// Return returns accounts without living processes.
func (a *Accounts) Return(accounts ...Account) {
	if len(accounts) == 0 {
		return
	}

	a.mu.Lock()
	defer a.mu.Unlock()

	for _, account := range accounts {
		if lock := a.taken[account.UID]; lock != nil {
			lock.Close()
		}
		delete(a.taken, account.UID)
	}

	close(a.changed)
	a.changed = make(chan struct{})
}

// Sweep kills the processes of the accounts that no run of this machine uses.
func Sweep(accounts []Account) error {
	var failed error
	for _, account := range accounts {
		lock, err := tryLock(account)
		if lock != nil {
			err = KillUser(account.UID)
			lock.Close()
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// Give makes the directories of a run beside its work directory and gives them to its account. shared means
// that its temporary directory replaces the world-writable directories of the machine.
func Give(run Run, shared bool) error {
	tmp := filepath.Join(run.Dir, Tmp)
	if err := os.Mkdir(tmp, 0o700); err != nil {
		return err
	}

	a := run.Account
	if a == nil && !run.Sandboxed {
		if shared {
			return os.Chmod(tmp, 0o777|os.ModeSticky)
		}
		return nil
	}

	home := filepath.Join(run.Dir, Home)
	if err := os.Mkdir(home, 0o700); err != nil && !errors.Is(err, fs.ErrExist) { // an agent's has files already
		return err
	}

	if a == nil {
		return nil
	}

	for _, dir := range []string{tmp, home} {
		if err := os.Lchown(dir, int(a.UID), int(a.GID)); err != nil {
			return err
		}
	}

	const passThrough = 0o711
	return os.Chmod(run.Dir, passThrough)
}
