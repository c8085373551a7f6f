package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/teamctl/teamctl/team"
)

// Op is one change of the ledger, in the form in which it is sent to the
// process that applies it.
type Op struct {
	ID   string          `json:"id"`   // uuid, version 7 for speed; the same id is applied once. Empty: never repeated
	Name string          `json:"name"` // a name of the operations table
	Args json.RawMessage `json:"args"`
	At   int64           `json:"at"`            // Unix milliseconds; 0: the time of application
	Who  string          `json:"who,omitempty"` // actor of events that name no other
	Via  string          `json:"via,omitempty"` // the screen by which it acts

	Again bool `json:"-"` // an earlier attempt may have reached a Writer (Repeated)
}

// Writer applies operations. The error of a refused operation is a coded
// *team.Error; ErrWriterGone means that it is unknown whether op was applied,
// and that the same op may be passed to another Writer.
type Writer interface {
	Write(ctx context.Context, op Op) (json.RawMessage, error)
}

// ErrWriterGone is returned by a Writer that does not know the result of an
// operation: the supervisor behind it has exited.
var ErrWriterGone = errors.New("the ledger's writer has gone away")

// Switching writes through primary while it has a Writer, and repeats the same
// operation with fallback if that Writer has gone away.
func Switching(primary func(context.Context) (Writer, bool), fallback Writer) Writer {
	return &switching{primary: primary, fallback: fallback}
}

type switching struct {
	primary  func(context.Context) (Writer, bool)
	fallback Writer
}

func (s *switching) Write(ctx context.Context, op Op) (json.RawMessage, error) {
	w, ok := s.primary(ctx)
	if !ok {
		if !op.Again {
			op.ID = "" // sent to no other writer, so it cannot be a repetition
		}
		return s.fallback.Write(ctx, op)
	}
	res, err := w.Write(ctx, op)
	if !errors.Is(err, ErrWriterGone) {
		return res, err
	}
	return s.fallback.Write(ctx, op)
}

// Direct applies operations in this process, one transaction each.
func Direct(db *DB) Writer { return direct{db} }

type direct struct{ db *DB }

func (d direct) Write(ctx context.Context, op Op) (json.RawMessage, error) {
	j := &job{op: op}
	if err := d.db.transact(ctx, []*job{j}); err != nil {
		return nil, d.db.asCoded(op.Name, err)
	}
	return j.res, j.err
}

// job is an operation and its result.
type job struct {
	op  Op
	res json.RawMessage
	err error
}

// transact applies jobs in one transaction under the fair lock. An error means
// that nothing was applied; a refused job has its own error and no effect.
func (db *DB) transact(ctx context.Context, jobs []*job) error {
	ctx, cancel := context.WithTimeout(ctx, db.opts.BusyTimeout)
	defer cancel()
	var told reach
	err := db.write(ctx, "wait for other writers", func() error {
		if err := db.writable(jobs); err != nil {
			return err
		}
		return retryBusy(ctx, func() (err error) {
			err = db.attempt(jobs, false, &told)
			if errors.Is(err, errUndo) {
				err = db.attempt(jobs, true, &told)
			}
			return err
		})
	})
	db.poke(told)
	return err
}

// errUndo means that a refused operation had already written: the transaction
// must be repeated with a savepoint around each operation.
var errUndo = errors.New("an operation must be undone")

// attempt is one BEGIN .. COMMIT. An error means that nothing was committed.
// Nearly every refusal comes before the first write of its operation and needs
// no undo, so savepoints, a third of all statements, are only used in a second
// run (careful). It adds to told whom the commit concerns, and everyone if others
// have committed since the last one.
func (db *DB) attempt(jobs []*job, careful bool, told *reach) error {
	t := &tx{db: db}
	if _, err := t.exec("BEGIN IMMEDIATE"); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	committed := false
	defer func() {
		if !committed {
			// SQLite may already have rolled back; then this fails and no
			// transaction is open.
			_, _ = t.exec("ROLLBACK")
		}
	}()
	foreign, err := db.committedByOthers()
	if err != nil {
		return err
	}
	if foreign {
		told.everyone()
	}
	kept, made := 0, reach{}
	for _, j := range jobs {
		run := db.bare
		if careful {
			run = db.inSavepoint
		}
		t, err := run(j)
		if err != nil {
			return err
		}
		if t.wrote {
			made.add(t.reach)
		}
		if t.kept {
			kept++
		}
	}
	if kept > 0 {
		now := jobs[len(jobs)-1].op.At
		if _, err := t.exec(sqlAppliedPrune, now-appliedKeep, appliedPrune*kept); err != nil {
			return fmt.Errorf("prune: %w", err)
		}
	}
	if _, err := t.exec("COMMIT"); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	committed = true
	told.add(made)
	return nil
}

// begin returns the transaction for one job.
func (db *DB) begin(j *job) *tx {
	t := &tx{db: db, who: j.op.Who, via: j.op.Via, now: j.op.At}
	if t.now <= 0 {
		t.now = time.Now().UnixMilli()
	}
	return t
}

// bare applies one job. Its error concerns the transaction, not the job; it is
// errUndo if the failed job may have left changes.
func (db *DB) bare(j *job) (*tx, error) {
	t := db.begin(j)
	j.res, j.err = t.apply(j.op)
	if j.err == nil {
		return t, nil
	}
	var refusal *team.Error
	if isBusy(j.err) {
		return nil, j.err
	}
	// After an error of SQLite itself the transaction may have been rolled
	// back.
	if t.wrote || isSQLite(j.err) || !errors.As(j.err, &refusal) {
		return nil, errUndo
	}
	j.err = db.asCoded(j.op.Name, j.err)
	return t, nil
}

// inSavepoint is bare with a savepoint to roll back to.
func (db *DB) inSavepoint(j *job) (*tx, error) {
	t := db.begin(j)
	if _, err := t.exec("SAVEPOINT op"); err != nil {
		return nil, fmt.Errorf("savepoint: %w", err)
	}
	t.wrote = false
	j.res, j.err = t.apply(j.op)
	if isBusy(j.err) {
		return nil, j.err
	}
	wrote := t.wrote
	if j.err != nil {
		j.err = db.asCoded(j.op.Name, j.err)
		wrote = false
		if _, err := t.exec("ROLLBACK TO op"); err != nil {
			return nil, fmt.Errorf("roll back %s: %w", j.op.Name, errors.Join(err, j.err))
		}
	}
	if _, err := t.exec("RELEASE op"); err != nil {
		return nil, fmt.Errorf("release: %w", err)
	}
	t.wrote = wrote
	return t, nil
}

const (
	appliedKeep  = int64(time.Hour / time.Millisecond)
	appliedPrune = 4 // maximum number of rows pruned per operation of a transaction
)

const (
	sqlAppliedGet = `SELECT result FROM applied_ops WHERE id = ?`
	sqlAppliedPut = `INSERT INTO applied_ops(id, at, result) VALUES (?, ?, ?)`
	// The condition on at is in the subquery: next to the IN it makes SQLite
	// scan the whole table at each commit, which cost more than everything
	// else.
	sqlAppliedPrune = `DELETE FROM applied_ops WHERE id IN (SELECT id FROM (SELECT id, at FROM applied_ops ORDER BY id LIMIT ?2) WHERE at < ?1)`
)

// apply runs one operation, or returns the result of its first run. A bug in an
// operation must not crash the supervisor and with it the writes of all others.
func (t *tx) apply(op Op) (res json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			res, err = nil, team.Errorf(team.CodeInternal, "%s: panic: %v", op.Name, p)
		}
	}()
	spec, ok := ops[op.Name]
	if !ok {
		return nil, team.Errorf(team.CodeInvalid, "unknown ledger operation %q", op.Name)
	}
	once := spec.retryable && op.ID != ""
	if once {
		first, found, err := value[string](t, sqlAppliedGet, op.ID)
		if err != nil || found {
			return json.RawMessage(first), err
		}
	}
	if !spec.near {
		t.reach.everyone()
	}
	out, err := spec.run(t, op.Args)
	if err != nil {
		return nil, err
	}
	if res, err = json.Marshal(out); err != nil {
		return nil, fmt.Errorf("encode result: %w", err)
	}
	if !once || !t.wrote {
		return res, nil
	}
	_, err = t.exec(sqlAppliedPut, op.ID, t.now, string(res))
	t.kept = true
	return res, err
}
