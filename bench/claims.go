package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	_ "github.com/mattn/go-sqlite3" // the floor is SQLite with nothing of ours around it

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// claims: tasks that processes take from one board, each claim durable when it is
// told, against SQLite alone with the same durability.
var claims = benchmark{name: "claims", title: "Claims", run: runClaims, note: claimsNote}

const claimsNote = "Sixteen processes on two cores are bound by the processor, not by the disk. The columns of processor time bear other work on " +
	"the machine best, though it makes them more: two cores give two million divided by the sum. It is not the messages, for answers alone " +
	"come at several times that rate, but sleeping and waking: a client that waits for a commit goes to sleep, and both sides' runtimes " +
	"with it. Without a supervisor the same happens to the next in line for the lock, and each turn begins with reading again what " +
	"others have changed. In eight interleaved runs of 16 processes with and without each part, medians: the stream of operations beside HTTP saves 61 % of " +
	"the processor time of a claim, and the queue of the lock keeps the fairness of direct writers at 0.44 instead of 0.00. One goroutine for all connections " +
	"(21 %) and system calls that the runtime's monitor does not see (23 %) were worth less than a third, and are gone."

const (
	goalClaims16   = 2.5 // x one process on bare SQLite
	goalDirect     = 0.8
	goalFairness   = 0.8
	goalFairDirect = 0.5
	goalClaimP99   = 5 * time.Millisecond
	goalNaive      = 10 // x 16 processes on a queue of the ordinary kind
)

const (
	claimSpan = time.Second
	floorSpan = claimSpan / 2 // the floor is taken beside each measurement: the machine drifts
)

func childClaim(ctx context.Context, a childArgs) (func() (time.Duration, bool, error), func() error, error) {
	led, closeDB, err := openLedger(ctx, team.Home{Dir: a.Home}.Team("b"), a.Direct)
	if err != nil {
		return nil, nil, err
	}
	in := ledger.ClaimIn{Owner: memberSession(a.Number), Lease: time.Hour}
	return func() (time.Duration, bool, error) {
		task, err := led.Claim(ctx, in)
		return 0, task != nil, err
	}, closeDB, nil
}

func runClaims(ctx context.Context, e env) (string, error) {
	rounds, counts := 3, []int{1, 2, 4, 8, 16}
	if e.quick {
		rounds, counts = 1, []int{1, 16}
	}
	type line struct {
		label    string
		n        int
		direct   bool
		naive    bool
		rates    []float64
		ratios   []float64 // to one process on bare SQLite in the same seconds
		fairness []float64
		times    []time.Duration
		spent    []float64 // processor time of the clients for a claim, in us
		serving  []float64 // and of the supervisor
	}
	var lines []*line
	for _, n := range counts {
		lines = append(lines, &line{label: "through the supervisor", n: n})
	}
	for _, n := range counts {
		lines = append(lines, &line{label: "direct", n: n, direct: true})
	}
	lines = append(lines, &line{label: "an ordinary queue, busy timeout alone", n: 16, naive: true})
	var alone, grouped, answers []float64
	for r := range rounds {
		w, err := newWorld(ctx, e, fmt.Sprint("w", r), 16)
		if err != nil {
			return "", err
		}
		g, err := rawClaims(ctx, filepath.Join(e.dir, fmt.Sprintf("raw%dg.db", r)), 16, claimSpan)
		if err != nil {
			return "", err
		}
		grouped = append(grouped, g)
		p, err := pings(ctx, e.dir, 16, claimSpan)
		if err != nil {
			return "", err
		}
		answers = append(answers, p)
		for i := range lines {
			l := lines[(i+r)%len(lines)]
			floor := func() (float64, error) {
				return rawClaims(ctx, filepath.Join(e.dir, fmt.Sprintf("raw%d-%d-%d.db", r, i, len(alone))), 1, floorSpan)
			}
			before, err := floor()
			if err != nil {
				return "", err
			}
			alone = append(alone, before)
			if err := w.tasks(ctx, 60_000); err != nil {
				return "", err
			}
			stop, served := func() {}, func() (time.Duration, error) { return 0, nil }
			work := "claim"
			switch {
			case l.naive:
				work = "naive"
				if err := naiveQueue(ctx, w.layout.Home.Dir, 60_000); err != nil {
					return "", err
				}
			case !l.direct:
				if stop, served, err = w.measured(ctx); err != nil {
					return "", err
				}
			}
			res, err := crowd(ctx, work, l.n, childArgs{Home: w.layout.Home.Dir, Direct: l.direct, For: claimSpan})
			busy, busyErr := served()
			stop()
			if err := errors.Join(err, busyErr); err != nil {
				return "", err
			}
			after, err := floor()
			if err != nil {
				return "", err
			}
			alone = append(alone, after)
			ops, times, fair := sum(res)
			l.ratios = append(l.ratios, float64(ops)/claimSpan.Seconds()/((before+after)/2))
			l.rates = append(l.rates, float64(ops)/claimSpan.Seconds())
			l.fairness, l.times = append(l.fairness, fair), append(l.times, times...)
			each := float64(max(ops, 1)) * float64(time.Microsecond)
			l.spent, l.serving = append(l.spent, float64(clientsCPU(res))/each), append(l.serving, float64(busy)/each)
		}
	}
	naive := middle(lines[len(lines)-1].ratios)
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nOne process on bare SQLite, one claim a commit: %.0f a second; 16 claims a commit: %.0f. Each ratio is to the former just before and after. "+
		"16 processes that ask one for an answer, with nothing behind it, get %.0f a second: %.2f x one process on SQLite.\n\n",
		where(rounds), middle(alone), middle(grouped), middle(answers), middle(answers)/middle(alone))
	b.WriteString("| way | processes | claims/s | x one process on SQLite | x 16 a commit | fairness min/max | p50 ms | p99 ms | clients' us of processor | supervisor's | goal |\n|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, l := range lines {
		rate, x, fair, p99 := middle(l.rates), middle(l.ratios), middle(l.fairness), quantile(l.times, 0.99)
		goal := ""
		switch {
		case l.naive:
		case l.n == 16 && !l.direct:
			goal = reached(x >= goalClaims16 && x >= goalNaive*naive && fair >= goalFairness && p99 <= goalClaimP99,
				fmt.Sprintf(">= %.1f x, >= %d x the ordinary queue (%.1f), fairness >= %.1f, p99 <= %v", goalClaims16, goalNaive, x/naive, goalFairness, goalClaimP99))
		case l.n == 16:
			goal = reached(x >= goalDirect && fair >= goalFairDirect, fmt.Sprintf(">= %.1f x, fairness >= %.1f", goalDirect, goalFairDirect))
		}
		fmt.Fprintf(&b, "| %s | %d | %.0f | %.2f | %.2f | %.2f | %s | %s | %.0f | %.0f | %s |\n", l.label, l.n, rate, x, rate/middle(grouped),
			fair, ms(median(l.times)), ms(p99), middle(l.spent), middle(l.serving), goal)
	}
	return b.String(), nil
}

func reached(ok bool, goal string) string {
	if ok {
		return goal + ": met"
	}
	return goal + ": MISSED"
}

// rawClaims is one process with a prepared UPDATE .. RETURNING over a partial index,
// so many claims a transaction, synchronous=FULL.
func rawClaims(ctx context.Context, path string, batch int, span time.Duration) (perSecond float64, err error) {
	db, err := sql.Open("sqlite3", "file:"+path+"?_journal_mode=WAL&_synchronous=FULL&_txlock=immediate")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(ctx, `CREATE TABLE tasks(id INTEGER PRIMARY KEY, status TEXT NOT NULL, owner TEXT, unmet INTEGER NOT NULL DEFAULT 0, subject TEXT);
		CREATE INDEX ready ON tasks(id) WHERE status = 'pending' AND unmet = 0;
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 120000) INSERT INTO tasks(id, status, subject) SELECT i, 'pending', 'task' FROM n;
		PRAGMA wal_checkpoint(TRUNCATE)`); err != nil {
		return 0, err
	}
	claim, err := db.PrepareContext(ctx, `UPDATE tasks SET status = 'claimed', owner = ? WHERE id = (SELECT id FROM tasks INDEXED BY ready
		WHERE status = 'pending' AND unmet = 0 ORDER BY id LIMIT 1) RETURNING id`)
	if err != nil {
		return 0, err
	}
	defer claim.Close()
	n, began := 0, time.Now()
	for time.Since(began) < span {
		if err := rawBatch(ctx, db, claim, batch); err != nil {
			return 0, err
		}
		n += batch
	}
	return float64(n) / time.Since(began).Seconds(), nil
}

// rawBatch is one transaction.
func rawBatch(ctx context.Context, db *sql.DB, claim *sql.Stmt, batch int) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	st := tx.StmtContext(ctx, claim)
	defer st.Close()
	for range batch {
		if err := rawClaim(ctx, st); err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	return tx.Commit()
}

func rawClaim(ctx context.Context, st *sql.Stmt) error {
	rows, err := st.QueryContext(ctx, "me")
	if err != nil {
		return err
	}
	defer rows.Close()
	found := false
	for rows.Next() { // to the end: a RETURNING that is reset early keeps SQLite from checkpoints
		found = true
	}
	if !found {
		return errors.Join(rows.Err(), errors.New("the board is empty"))
	}
	return rows.Err()
}
