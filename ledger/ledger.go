package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/teamctl/teamctl/team"
)

// Ledger is the typed interface of a ledger: it reads from the file and writes
// through a Writer. It is safe for concurrent use.
type Ledger struct {
	db  *DB
	w   Writer
	who string
	via string // the screen by which who acts
	now func() time.Time
}

// New returns a Ledger on db that writes through w.
func New(db *DB, w Writer) *Ledger {
	return &Ledger{db: db, w: w, who: "supervisor", now: time.Now}
}

// As returns a Ledger whose events name who as the actor unless the operation
// itself names one. The default is "supervisor".
func (l *Ledger) As(who string) *Ledger {
	c := *l
	c.who = who
	return &c
}

// Via returns a Ledger whose events say by which screen their actor, a person, did it.
func (l *Ledger) Via(door string) *Ledger {
	c := *l
	c.via = door
	return &c
}

// DB returns the file behind the ledger.
func (l *Ledger) DB() *DB { return l.db }

// answers reports whether w is a Writer in this process. Its answers are never
// lost, so no operation is sent twice, and none needs an id.
func answers(w Writer) bool {
	switch w.(type) {
	case direct, *Group:
		return true
	}
	return false
}

// write sends an operation, with a new id unless ctx is Repeated.
func write[R any](ctx context.Context, l *Ledger, name string, args any) (R, error) {
	var out R
	raw, err := json.Marshal(args)
	if err != nil {
		return out, team.Errorf(team.CodeInvalid, "%s: encode: %w", name, err)
	}
	op := Op{Name: name, Args: raw, At: l.now().UnixMilli(), Who: l.who, Via: l.via}
	if !answers(l.w) {
		if err := identify(ctx, &op); err != nil {
			return out, err
		}
	}
	res, err := l.w.Write(ctx, op)
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(res, &out); err != nil {
		return out, fmt.Errorf("%s: decode the result: %w", name, err)
	}
	return out, nil
}
