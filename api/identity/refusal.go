package identity

import (
	"errors"
	"fmt"
)

// Refusal is the reason why a token is worth nothing. It has no part of the token beyond short values of claims.
type Refusal struct{ Reason string }

// Error returns the reason.
func (r *Refusal) Error() string { return r.Reason }

func refuse(format string, args ...any) error { return &Refusal{fmt.Sprintf(format, args...)} }

// ErrUnavailable means that the keys of an issuer cannot be fetched just now.
var ErrUnavailable = errors.New("the keys of the issuer cannot be fetched just now")
