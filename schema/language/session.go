package language

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/sourcegraph/jsonrpc2"
)

// Config is what a server needs. Its zero value works.
type Config struct {
	Version string // of the program
	// Lookup answers what only a server of the program knows. Nil for none.
	Lookup Lookup
}

const (
	maxDocuments     = 1000
	maxDocumentBytes = 64 << 20 // of all open documents
)

// session is the state of one client.
type session struct {
	config Config
	conn   *jsonrpc2.Conn

	ready    chan struct{} // closed when conn is there
	exit     chan struct{} // closed when the client asks for the end
	dirty    chan struct{} // has a value when trees must be checked again
	asking   chan struct{} // has a value when the server of the program should be asked again
	requests sync.WaitGroup
	facts    *facts
	logged   string // the last warning, of the goroutine that asks

	mu          sync.Mutex
	initialized bool
	down        bool // the client asked for the end
	ended       bool // nothing more is begun
	client      initializeParams
	folders     []string // paths
	docs        map[string]*document
	bytes       int
	serial      uint64
	generation  uint64 // of all that trees depend on
	touched     uint64 // counts changes on disk
	watched     bool   // the client tells of them
	looked      bool   // the folders were searched for definitions
	trees       map[string]*tree
	running     map[jsonrpc2.ID]context.CancelFunc
}

func newSession(config Config) *session {
	return &session{
		config:  config,
		facts:   newFacts(),
		ready:   make(chan struct{}),
		exit:    make(chan struct{}),
		dirty:   make(chan struct{}, 1),
		asking:  make(chan struct{}, 1),
		docs:    map[string]*document{},
		trees:   map[string]*tree{},
		running: map[jsonrpc2.ID]context.CancelFunc{},
	}
}

// beside runs f in a goroutine that the session waits for. A session that has ended begins none.
func (s *session) beside(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if !s.ended {
		s.requests.Go(f)
	}
}

// decode reads parameters.
func decode(params json.RawMessage, into any) error {
	if json.Unmarshal(params, into) != nil {
		return errParams
	}
	return nil
}

var errParams = &jsonrpc2.Error{Code: jsonrpc2.CodeInvalidParams, Message: "the parameters are not the method's"}

const codeRequestFailed = -32803

// failed is the error of a request that cannot be met, for people.
func failed(text string) error { return &jsonrpc2.Error{Code: codeRequestFailed, Message: text} }

var errInternal = &jsonrpc2.Error{Code: jsonrpc2.CodeInternalError, Message: "internal error"}

// protected calls f. A panic, which would be a bug, becomes an error: the session goes on.
func protected(f func() (any, error)) (result any, err error) {
	defer func() {
		if recover() != nil {
			result, err = nil, errInternal
		}
	}()
	return f()
}

// askAgain has the server of the program asked.
func (s *session) askAgain() {
	select {
	case s.asking <- struct{}{}:
	default:
	}
}

// log shows a warning in the client's log, once as long as there is no other.
func (s *session) log(ctx context.Context, text string) {
	if s.logged == text {
		return
	}

	s.logged = text
	_ = s.conn.Notify(ctx, "window/logMessage", map[string]any{"type": 2, "message": text})
}
