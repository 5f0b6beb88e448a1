package db

import (
	"database/sql"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Micros returns the stored form of a time.
func Micros(t time.Time) int64 { return t.UnixMicro() }

// MicrosOrNull returns the stored form of a time, NULL for nil.
func MicrosOrNull(t *time.Time) any {
	if t == nil {
		return nil
	}
	return t.UnixMicro()
}

// Time returns the time that is stored as us.
func Time(us int64) time.Time { return time.UnixMicro(us).UTC() }

// TimeOrNil returns the time that is stored as us, nil for NULL.
func TimeOrNil(us sql.NullInt64) *time.Time {
	if !us.Valid {
		return nil
	}
	t := Time(us.Int64)
	return &t
}

// Flag returns the stored form of a truth value.
func Flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Text returns text that both databases take: valid UTF-8 without NUL.
func Text(text string) string {
	if !strings.Contains(text, "\x00") && utf8.ValidString(text) {
		return text
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// Bounded is Text of at most so many characters, for columns that an index has: PostgreSQL refuses a row
// whose part of an index is larger than 2,704 bytes.
func Bounded(text string, characters int) string {
	text = Text(text)
	if len(text) <= characters {
		return text
	}

	for i := range text {
		if characters == 0 {
			return text[:i]
		}
		characters--
	}

	return text
}

// Placeholders returns "$1, $2, …" for values, and the values as arguments.
func Placeholders(values []string) (string, []any) {
	marks, args := make([]string, len(values)), make([]any, len(values))
	for i, v := range values {
		marks[i], args[i] = "$"+strconv.Itoa(i+1), v
	}
	return strings.Join(marks, ", "), args
}

// clock follows the clock of a PostgreSQL server, by which all that share a state judge leases: their own
// clocks may differ. Between two readings it goes on by the monotonic clock of this machine, so that it
// does not jump when that machine's clock is set. Without a reading, as with SQLite, it is this machine's.
type clock struct {
	mu       sync.RWMutex
	read     time.Time // when the last reading was, here
	said     time.Time // what it was, there
	unsteady time.Time // when a reading last differed from what was expected, here
	warned   bool
}

func affected(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// errPanicked stands for a bug in a change.
var errPanicked = errors.New("the change panicked: this is a bug")
