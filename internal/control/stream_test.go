package control

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// within bounds what has to happen; nothing is measured with it.
const within = 5 * time.Minute

func dialOps(t *testing.T, f writerFunc) (*frameConn, *Client, func()) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	stop := serveOps(t, socket, f)
	c := NewClient(socket)
	t.Cleanup(c.Close)
	conn, err := c.ops.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(within))
	return conn, c, stop
}

func argsBack(op ledger.Op) (json.RawMessage, error) { return bytes.Clone(op.Args), nil }

func wantAnswer(t *testing.T, r *bufio.Reader, want string) {
	t.Helper()
	frame, err := readFrame(r)
	if err != nil {
		t.Fatal(err)
	}
	got, err := parseAnswer(frame)
	if err != nil || string(got) != want {
		t.Fatalf("%.100q, %v; want %.100q", got, err, want)
	}
}

// A client that sends many operations at once, in pieces of any size, gets the answers in order.
func TestOpsInPieces(t *testing.T) {
	t.Parallel()
	conn, _, _ := dialOps(t, argsBack)
	var all []byte
	var want []string
	for i := range 300 {
		args := fmt.Sprintf(`"%d %s"`, i, strings.Repeat("x", i*i%7001)) // many are longer than what is read at once
		want = append(want, args)
		all = append(all, appendOp(nil, ledger.Op{ID: "id", Name: "n", Args: json.RawMessage(args)})...)
	}
	var sent sync.WaitGroup
	sent.Go(func() {
		for n := 1; len(all) > 0; n = n*3%5003 + 1 {
			n = min(n, len(all))
			if _, err := conn.Write(all[:n]); err != nil {
				t.Error(err)
				return
			}
			all = all[n:]
		}
	})
	for _, w := range want {
		wantAnswer(t, conn.r, w)
	}
	sent.Wait()
}

// What came together with the request to upgrade is an operation too.
func TestOpsAtOnce(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "s")
	serveOps(t, socket, writerFunc(argsBack))
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(within))
	out := []byte("POST /v1/ops HTTP/1.1\r\nHost: supervisor\r\nConnection: Upgrade\r\nUpgrade: " + opsProtocol + "\r\nContent-Length: 0\r\n\r\n")
	for _, args := range []string{"1", "2"} {
		out = append(out, appendOp(nil, ledger.Op{Name: "n", Args: json.RawMessage(args)})...)
	}
	if _, err := conn.Write(out); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	for line := ""; line != "\r\n"; {
		if line, err = r.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	wantAnswer(t, r, "1")
	wantAnswer(t, r, "2")
}

// A client that does not take its answers holds up nobody else, and has all of them
// once it does.
func TestOpsNotTaken(t *testing.T) {
	t.Parallel()
	const answer = 100_000
	big := `"` + strings.Repeat("x", answer) + `"`
	var mu sync.Mutex
	asked := 0
	arrived := make(chan struct{})
	conn, c, stop := dialOps(t, func(op ledger.Op) (json.RawMessage, error) {
		if op.Name == "small" {
			return json.RawMessage("1"), nil
		}
		mu.Lock()
		defer mu.Unlock()
		if asked++; asked == 3 {
			close(arrived)
		}
		return json.RawMessage(big), nil
	})
	var frames []byte
	for range 20 {
		frames = append(frames, appendOp(nil, ledger.Op{Name: "big", Args: json.RawMessage(`{}`)})...)
	}
	if _, err := conn.Write(frames); err != nil {
		t.Fatal(err)
	}
	select {
	case <-arrived: // its answers wait: more than a socket holds
	case <-time.After(within):
		t.Fatal("the operations have not come")
	}
	for range 3 {
		if res, err := c.Write(t.Context(), ledger.Op{ID: "1", Name: "small"}); err != nil || string(res) != "1" {
			t.Errorf("%s, %v", res, err)
		}
	}
	for range 10 {
		wantAnswer(t, conn.r, big)
	}
	// Another that never takes them is not a reason to stay.
	other, err := c.ops.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	if _, err := other.Write(frames); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		wantAnswer(t, conn.r, big)
	}
	stop()
	if _, err := io.Copy(io.Discard, conn.r); err != nil {
		t.Errorf("the end of a connection: %v", err)
	}
}

// Many processes' operations, some of which are refused, reach a real ledger and are
// answered to who sent them.
func TestOpsLedger(t *testing.T) {
	t.Parallel()
	db, err := ledger.Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"), ledger.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	group := ledger.NewGroup(db)
	if err := group.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = group.Stop(t.Context()) }()
	socket := filepath.Join(t.TempDir(), "s")
	stop := serveOps(t, socket, group)
	const clients, each = 8, 5
	direct := ledger.New(db, group)
	tasks := make([]ledger.NewTask, clients*each)
	for i := range tasks {
		tasks[i].Subject = "task"
	}
	if _, err := direct.CreateTasks(t.Context(), tasks, "lead"); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	owners := map[string]string{}
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			c := NewClient(socket)
			defer c.Close()
			l := ledger.New(db, c)
			me := fmt.Sprintf("s%d", i)
			for range each {
				task, err := l.Claim(t.Context(), ledger.ClaimIn{Owner: me})
				if err != nil || task == nil || task.Owner != me {
					t.Errorf("%+v, %v", task, err)
					return
				}
				mu.Lock()
				if was, twice := owners[task.ID]; twice {
					t.Errorf("task %s is of %s and %s", task.ID, was, me)
				}
				owners[task.ID] = me
				mu.Unlock()
				if _, err := l.Claim(t.Context(), ledger.ClaimIn{Owner: me, ID: "nothing"}); !team.IsCode(err, team.CodeNotFound) {
					t.Errorf("a claim of nothing: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if len(owners) != clients*each {
		t.Errorf("%d tasks are claimed, of %d", len(owners), clients*each)
	}
	stop()
	if _, err := ledger.New(db, NewClient(socket)).Claim(t.Context(), ledger.ClaimIn{Owner: "s"}); !errors.Is(err, ledger.ErrWriterGone) {
		t.Errorf("nobody serves: %v", err)
	}
}
