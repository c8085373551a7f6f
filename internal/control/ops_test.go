package control

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// writerFunc is a group writer for the test.
type writerFunc func(ledger.Op) (json.RawMessage, error)

func (f writerFunc) Write(_ context.Context, op ledger.Op) (json.RawMessage, error) { return f(op) }

// serveOps serves a socket with a writer until stop, which may be called again.
func serveOps(t *testing.T, socket string, w ledger.Writer) (stop func()) {
	t.Helper()
	return serveStreams(t, socket, opsPath, &streams{protocol: opsProtocol, frames: opFrames{w}})
}

func serveStreams(t *testing.T, socket, path string, s *streams) (stop func()) {
	t.Helper()
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("POST "+path, s)
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = srv.Serve(l)
	}()
	stop = sync.OnceFunc(func() {
		s.close(time.Second)
		_ = srv.Close()
		<-served
	})
	t.Cleanup(stop)
	return stop
}

func TestOpsStream(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "s")
	echo := writerFunc(func(op ledger.Op) (json.RawMessage, error) {
		if op.Name == "refuse" {
			return nil, team.Errorf(team.CodeConflict, "no: %s", op.Who).WithReason("because").WithHint("try")
		}
		return json.Marshal(op)
	})
	stop := serveOps(t, socket, echo)
	c := NewClient(socket)
	defer c.Close()
	op := ledger.Op{ID: "id", Name: "n", Who: "ä", Via: "page", At: -5, Args: json.RawMessage(`{"a":[1]}`)}
	var wg sync.WaitGroup
	for range 20 { // more at once than connections are kept
		wg.Go(func() {
			for range 10 {
				res, err := c.Write(t.Context(), op)
				var got ledger.Op
				if err == nil {
					err = json.Unmarshal(res, &got)
				}
				if diff := cmp.Diff(op, got); err != nil || diff != "" {
					t.Errorf("%v %s", err, diff)
				}
			}
		})
	}
	wg.Wait()
	if n := len(c.ops.idle); n == 0 || n > maxIdle {
		t.Errorf("%d connections are kept", n)
	}
	_, err := c.Write(t.Context(), ledger.Op{Name: "refuse", Who: "me"})
	if team.CodeOf(err) != team.CodeConflict || team.ReasonOf(err) != "because" || team.HintOf(err) != "try" || errors.Is(err, ledger.ErrWriterGone) {
		t.Errorf("%v", err)
	}
	// The next supervisor is asked, though the connections are of the last one.
	stop()
	if _, err := c.Write(t.Context(), op); !errors.Is(err, ledger.ErrWriterGone) {
		t.Errorf("nobody is there: %v", err)
	}
	serveOps(t, socket, echo)
	for len(c.ops.idle) < maxIdle {
		conn, err := c.ops.dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.Close() // as if its supervisor had died
		c.ops.idle = append(c.ops.idle, conn)
	}
	if _, err := c.Write(t.Context(), op); err != nil {
		t.Errorf("%v", err)
	}
	// Without an id it may not be sent twice.
	if _, err := c.Write(t.Context(), ledger.Op{Name: "n"}); err != nil { // on the fresh connection
		t.Errorf("%v", err)
	}
	_ = c.ops.idle[len(c.ops.idle)-1].Close()
	if _, err := c.Write(t.Context(), ledger.Op{Name: "n"}); !errors.Is(err, ledger.ErrWriterGone) {
		t.Errorf("%v", err)
	}
}

// A caller that gives up has its context's error; the answer that comes later is
// nobody's, least of all the next caller's.
func TestOpsStreamGivenUp(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "s")
	hold := make(chan struct{})
	serveOps(t, socket, writerFunc(func(op ledger.Op) (json.RawMessage, error) {
		if op.Name == "slow" {
			<-hold
		}
		return json.Marshal(op.Name)
	}))
	c := NewClient(socket)
	defer c.Close()
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		if _, err := c.Write(ctx, ledger.Op{ID: "1", Name: "slow"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		cancel()
		if res, err := c.Write(t.Context(), ledger.Op{ID: "2", Name: "fast"}); err != nil || string(res) != `"fast"` {
			t.Errorf("%s, %v", res, err)
		}
	}
	close(hold)
}

// What has come is answered before a supervisor leaves, and a supervisor that knows
// no frames is spoken to as before.
func TestOpsStreamLeavesAndFallsBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	begun, hold := make(chan struct{}), make(chan struct{})
	s := &streams{protocol: opsProtocol, frames: opFrames{writerFunc(func(ledger.Op) (json.RawMessage, error) {
		close(begun)
		<-hold
		return json.RawMessage(`1`), nil
	})}}
	stop := serveStreams(t, filepath.Join(dir, "s"), opsPath, s)
	c := NewClient(filepath.Join(dir, "s"))
	defer c.Close()
	answered := make(chan error, 1)
	go func() {
		res, err := c.Write(t.Context(), ledger.Op{ID: "1", Name: "n"})
		if err == nil && string(res) != "1" {
			err = fmt.Errorf("answer %s", res)
		}
		answered <- err
	}()
	<-begun
	time.AfterFunc(20*time.Millisecond, func() { close(hold) })
	s.close(time.Minute) // however long the answer is held up
	stop()
	if err := <-answered; err != nil {
		t.Error(err)
	}

	old := filepath.Join(dir, "o")
	l, err := net.Listen("unix", old)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/write", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`"old"`)) })
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = srv.Serve(l)
	}()
	oc := NewClient(old)
	for range 2 {
		if res, err := oc.Write(t.Context(), ledger.Op{ID: "1", Name: "n"}); err != nil || string(res) != `"old"` {
			t.Errorf("%s, %v", res, err)
		}
	}
	oc.Close()
	_ = srv.Close()
	<-served
}

// What is no frame ends the connection and reaches no writer.
func TestOpsStreamRefusesNonsense(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "s")
	serveOps(t, socket, writerFunc(func(ledger.Op) (json.RawMessage, error) {
		t.Error("the writer was asked")
		return nil, nil
	}))
	for _, frame := range []string{"\xff\xff\xff\xff", "\x00\x00\x00\x01x", "\x00\x00\x00\x08\xff\xff\xff\xffabcd"} {
		c := NewClient(socket)
		conn, err := c.ops.dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte(frame)); err != nil {
			t.Fatal(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(5 * time.Minute))
		if _, err := conn.r.ReadByte(); err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%q: %v", frame, err)
		}
		_ = conn.Close()
		c.Close()
	}
}

func FuzzFrame(f *testing.F) {
	f.Add(appendOp(nil, ledger.Op{ID: "a", Name: "b", Who: "c", At: 1, Args: json.RawMessage(`{}`)})[4:])
	f.Add([]byte("\x00\x00\x00\x08\xff\xff\xff\xffabcd"))
	f.Fuzz(func(t *testing.T, data []byte) {
		op, err := parseOp(data)
		if err != nil {
			return
		}
		again := appendOp(nil, op)
		if n := binary.BigEndian.Uint32(again); int(n) != len(again)-4 || string(again[4:]) != string(data) {
			t.Fatalf("%q became %q", data, again)
		}
	})
}

// A process that has written through a supervisor and keeps the connection writes by
// itself once that supervisor is gone, the same operation, and asks the next one again.
func TestWriterGoesOnAlone(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "tc") // short: a socket's path is
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	layout := team.Home{Dir: filepath.Join(dir, "h")}.Team("t")
	if err := PrivateDir(layout.Runtime()); err != nil {
		t.Fatal(err)
	}
	says := func(who string) writerFunc {
		return func(op ledger.Op) (json.RawMessage, error) { return json.Marshal(who + " " + op.ID) }
	}
	w, _ := Writer(layout, says("alone"))
	for _, step := range []struct{ who, id string }{{"first", "1"}, {"second", "2"}} {
		stop := serveOps(t, layout.Socket(), says(step.who))
		for range 2 {
			if res, err := w.Write(t.Context(), ledger.Op{ID: step.id, Name: "n"}); err != nil || string(res) != `"`+step.who+" "+step.id+`"` {
				t.Errorf("%s, %v", res, err)
			}
		}
		stop()
		// The first time it may have been applied by the one that has gone, and keeps its
		// id; then nobody has seen it.
		for _, want := range []string{`"alone ` + step.id + `"`, `"alone "`} {
			if res, err := w.Write(t.Context(), ledger.Op{ID: step.id, Name: "n"}); err != nil || string(res) != want {
				t.Errorf("%s, %v; want %s", res, err, want)
			}
		}
	}
}
