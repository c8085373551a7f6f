package ledger

import (
	"context"
	"fmt"
	"sync"

	"github.com/google/uuid"
)

// Repeated returns a context for several attempts at the same operation. An
// operation that is written again in it with the same arguments keeps its id: if
// an earlier attempt was applied but its reply was lost, or is still in the socket
// of a stopped supervisor, both are the same operation, which is applied once and
// whose result is returned. This holds for the hour for which ids are kept. A
// context that is already repeated is returned unchanged.
func Repeated(ctx context.Context) context.Context {
	if _, ok := ctx.Value(repeatedKey{}).(*repeated); ok {
		return ctx
	}
	return context.WithValue(ctx, repeatedKey{}, &repeated{ids: map[string]string{}})
}

type repeatedKey struct{}

// repeated holds the ids of the operations that were written in a context.
type repeated struct {
	mu  sync.Mutex
	ids map[string]string // by name and arguments
}

// identify sets the id of op: a new one, or that of an earlier attempt.
func identify(ctx context.Context, op *Op) error {
	r, ok := ctx.Value(repeatedKey{}).(*repeated)
	key := op.Name + "\x00" + string(op.Args)
	if ok {
		r.mu.Lock()
		defer r.mu.Unlock()
		if op.ID, op.Again = r.ids[key]; op.Again {
			return nil
		}
	}
	id, err := uuid.NewV7() // ordered by time: the log of applied ids grows at its end
	if err != nil {
		return fmt.Errorf("%s: make an id: %w", op.Name, err)
	}
	op.ID = id.String()
	if ok {
		r.ids[key] = op.ID
	}
	return nil
}
