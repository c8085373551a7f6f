package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/internal/hookcall"
	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/mail"
	"github.com/teamctl/teamctl/supervisor"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// maxBody bounds a request: a message has 100 kB at most, a batch of tasks more.
const maxBody = 64 << 20

type server struct {
	front *front
	http  *http.Server
	gate  *gate
	stop  context.CancelFunc // ends the requests' contexts
	// leaving ends with what follows a screen: it would delay the end of the server.
	leaving context.Context
	leave   context.CancelFunc
	closed  bool
	failed  error // of the front
	keeper  *keeper
	sign    *sign
	sup     *supervisor.Supervisor
	writer  ledger.Writer
	ops     streams // operations of the ledger
	mail    streams // deliveries to be mailed
	hooks   streams // of agents, by the small program
}

// ServeIn has the parts of the supervisor's process.
type ServeIn struct {
	Layout team.Layout
	// Build makes the supervisor's parts once the lock is held: its configuration
	// (Ledger and Log are filled in here) and what to release at the end. The release
	// ends all users of inside.
	Build func(ctx context.Context, inside Inside, cfg *supervisor.Config) (release func(), err error)
	Log   *slog.Logger
	// Hook runs an agent's hook for which nothing waits, and reports whether it has; nil: every hook
	// runs in a process of its own.
	Hook func(context.Context, *ledger.Ledger, hookcall.Request) bool
	// Listening is called once the socket answers.
	Listening func()
}

// Inside is what agents in the supervisor's process use where others use its socket: the
// ledger that it has open, its group commit, and its queue of mail.
type Inside struct {
	DB     *ledger.DB
	Writer ledger.Writer
	Mail   tool.Settler
}

// Serve is the supervisor's process: it holds the team's lock, serves the socket,
// and returns when the supervisor ends or ctx does. Agents keep running. A second
// supervisor is CodeConflict and names the pid of the first.
func Serve(ctx context.Context, in ServeIn) (err error) {
	l := in.Layout
	if _, err := os.Stat(l.Config()); err != nil {
		return team.Errorf(team.CodeNotFound, "team %q does not exist", l.Key).WithHint("teamctl ls")
	}
	held, err := own(l)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, held.Unlock()) }()
	sign := newSign(l, held[0].File())
	defer sign.give()
	keep, err := newKeeper(l)
	if err != nil {
		return err
	}
	defer keep.close()
	_ = os.Remove(l.SupervisorPID()) // nothing reads the previous supervisor's pid
	if err := os.WriteFile(l.SupervisorPID(), []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600); err != nil {
		return fmt.Errorf("write pid: %w", err)
	}
	defer func() {
		if keep.owns() {
			_ = os.Remove(l.SupervisorPID())
		}
	}()

	listener, err := listen(l)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }() // also unlinks the socket
	s := newServer(ctx, in, keep, sign)
	s.front.start(s.http, listener)
	defer func() { err = errors.Join(err, s.close(err)) }()

	db, err := ledger.Open(ctx, l.Ledger(), ledger.Options{LockPath: l.LedgerLock()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	place, restored, err := placeOf(ctx, l, db)
	if err != nil {
		return err
	}
	group := ledger.NewGroup(db)
	if err := group.Start(ctx); err != nil {
		return err
	}
	defer func() {
		down, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		err = errors.Join(err, group.Stop(down))
	}()

	cfg := supervisor.Config{Layout: l, Ledger: ledger.New(db, group), Log: in.Log, Woken: func() {
		sign.give()
		if keep.look() == nil {
			s.front.look()
		}
	}}
	words, err := supervisor.ReadLastWords(l.LastWords())
	if err != nil {
		return err
	}
	cfg.Before = supervisor.Before{Restored: restored, From: place.From, Words: words}
	inside := Inside{DB: db, Writer: group, Mail: mail.NewQueue(mail.Mailer{Layout: l, Ledger: cfg.Ledger})}
	release, err := in.Build(ctx, inside, &cfg)
	if err != nil {
		return err
	}
	defer release()
	sup := supervisor.New(cfg)
	if err := sup.Start(ctx); err != nil {
		return err
	}
	defer sup.Close()
	if err := settlePlace(ctx, l, cfg.Ledger, place, restored); err != nil {
		return err
	}
	_ = os.Remove(l.LastWords()) // they were heeded
	if err := sayAdopted(l); err != nil {
		return err
	}
	close(sign.adopted)
	sign.give()
	s.sup, s.writer = sup, group
	s.ops.frames = opFrames{group}
	s.mail.frames = mailFrames{inside.Mail}
	s.hooks.frames = hookFrames{cfg.Ledger, in.Hook}
	err = s.serve(ctx, in)
	if keep.isLost() {
		keep.leave(sup, in.Log)
	}
	return err
}

// own takes the locks of a supervisor. The lock of the sockets may be held for a moment by an
// exiting supervisor of another directory at the same path.
func own(l team.Layout) (held supervisorLocks, err error) {
	if err := PrivateDir(l.Runtime()); err != nil {
		return held, err
	}
	for i, path := range []string{l.SupervisorLock(), l.RuntimeLock()} {
		lock, ok, err := filelock.TryLock(path)
		if err == nil && !ok {
			err = team.Errorf(team.CodeConflict, "a supervisor of team %q runs already, pid %s", l.Key, readPID(l)).
				WithReason(team.ReasonSupervisorRunning)
		} else if err != nil {
			err = fmt.Errorf("lock supervisor of %s: %w", l.Key, err)
		}
		if err != nil {
			if i > 0 {
				err = errors.Join(err, held[0].Unlock())
			}
			return held, err
		}
		held[i] = lock
	}
	return held, nil
}

// placeOf returns where the ledger belongs; restored reports that its directory was restored
// there, or moved, since a supervisor last ran. A ledger at another place is refused.
func placeOf(ctx context.Context, l team.Layout, db *ledger.DB) (p ledger.Place, restored bool, err error) {
	if p, err = ledger.New(db, nil).Place(ctx); err != nil {
		return p, false, err
	}
	if err := p.Refusal(l.Dir); err != nil {
		return p, false, err
	}
	_, put := p.Here(l.Dir)
	return p, put || p.Unseen, nil
}

// settlePlace records the directory once the members that it speaks of were looked at.
func settlePlace(ctx context.Context, l team.Layout, led *ledger.Ledger, p ledger.Place, restored bool) error {
	if p.ID != "" && !restored {
		return nil
	}
	now, err := ledger.PlaceAt(l.Dir, l.Dir)
	if err != nil {
		return err
	}
	if p.ID != "" {
		now.ID = p.ID
	}
	return led.SetPlace(ctx, now)
}

// sayAdopted adds to the file of the pid that the members' states can be relied on.
func sayAdopted(l team.Layout) error {
	f, err := regular.OpenFile(l.SupervisorPID(), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("record that members are adopted: %w", err)
	}
	if _, err := f.WriteString(team.SupervisorAdopted + "\n"); err != nil {
		_ = f.Close()
		return fmt.Errorf("record that members are adopted: %w", err)
	}
	return f.Close()
}

// newServer returns the server of a supervisor that does not exist yet.
func newServer(ctx context.Context, in ServeIn, keep *keeper, sign *sign) *server {
	s := &server{keeper: keep, sign: sign, ops: streams{protocol: opsProtocol, keeper: keep}, mail: streams{protocol: mailProtocol, keeper: keep},
		hooks: streams{protocol: hookcall.Protocol, keeper: keep}}
	s.front = &front{layout: in.Layout, log: in.Log, failed: make(chan error, 1)}
	mux := http.NewServeMux()
	for path, f := range routes {
		mux.HandleFunc("POST "+path, s.handler(f))
	}
	mux.HandleFunc("POST "+viewPath, s.serveView)
	mux.Handle("POST "+opsPath, &s.ops)
	mux.Handle("POST "+mailPath, &s.mail)
	mux.Handle("POST "+hookcall.Path, &s.hooks)
	// Profiles are for who owns the socket, and only there.
	mux.HandleFunc("GET "+profilesPath, serveProfile)
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.stop, s.gate = cancel, newGate(mux, s.pong)
	s.leaving, s.leave = context.WithCancel(base)
	s.http = &http.Server{
		Handler:           s.gate,
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return base },
		ErrorLog:          slog.NewLogLogger(in.Log.Handler(), slog.LevelWarn),
	}
	return s
}

// serve answers until the supervisor or ctx ends.
func (s *server) serve(ctx context.Context, in ServeIn) error {
	s.gate.open(nil)
	if in.Listening != nil {
		in.Listening()
	}
	in.Log.Info("listening", "socket", in.Layout.Socket(), "pid", os.Getpid())
	select {
	case <-ctx.Done():
	case <-s.sup.Done():
	case <-s.keeper.lost:
	case s.failed = <-s.front.failed:
		return fmt.Errorf("serve %s: %w", in.Layout.Socket(), s.failed)
	}
	if s.keeper.owns() { // a new caller needs the next supervisor
		_ = os.Remove(in.Layout.SupervisorPID())
	}
	return s.close(nil)
}

// close ends the server, if it is still open. Current requests get their answer; those that wait
// for a member do not delay it, and those that wait for the start get the reason of its failure.
func (s *server) close(why error) error {
	if s.closed {
		return nil
	}
	s.closed = true
	select {
	case <-s.gate.decided:
	default:
		s.gate.open(why)
	}
	defer s.stop()
	s.leave()
	s.front.close()
	s.hooks.close(time.Second)
	s.mail.close(time.Second)
	s.ops.close(time.Second)
	if s.failed != nil { // it was returned
		return s.http.Close()
	}
	down, stop := context.WithTimeout(context.Background(), 2*time.Second)
	defer stop()
	if err := s.http.Shutdown(down); err != nil {
		_ = s.http.Close()
	}
	s.front.done.Wait()
	if err := <-s.front.failed; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", s.front.layout.Socket(), err)
	}
	return nil
}

// pong answers who listens, without the loop and without the disk.
func (s *server) pong(w http.ResponseWriter, r *http.Request) {
	if theirs := r.Header.Get(ledgerHeader); theirs != s.keeper.id {
		go func() { _ = s.keeper.look() }() // it may be the newer one
	}
	s.sign.give()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(pong{PID: os.Getpid(), Ledger: s.keeper.id})
}

func (s *server) handler(f func(context.Context, *server, []byte) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		var out any
		if err == nil {
			if err = s.keeper.check(r.Header.Get(ledgerHeader)); err == nil {
				out, err = f(r.Context(), s, body)
			}
		} else {
			err = team.Errorf(team.CodeInvalid, "read request: %w", err)
		}
		if err != nil {
			refuse(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(out)
	}
}

// listen creates the runtime directory and the socket. The caller holds the lock, so an existing
// socket has no owner.
func listen(l team.Layout) (net.Listener, error) {
	if err := PrivateDir(l.Runtime()); err != nil {
		return nil, err
	}
	if n := len(l.Socket()); n > maxSocketPath {
		return nil, team.Errorf(team.CodeInvalid, "socket path %s has %d bytes, %d at most", l.Socket(), n, maxSocketPath).
			WithHint("set " + team.EnvRuntime + " to a short directory")
	}
	if err := os.Remove(l.Socket()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, team.Errorf(team.CodeUnavailable, "replace socket: %w", err)
	}
	listener, err := net.Listen("unix", l.Socket())
	if err != nil {
		return nil, team.Errorf(team.CodeUnavailable, "listen on %s: %w", l.Socket(), err)
	}
	if err := os.Chmod(l.Socket(), 0o600); err != nil {
		_ = listener.Close()
		return nil, fmt.Errorf("protect socket: %w", err)
	}
	return listener, nil
}

// maxSocketPath is sun_path less its NUL, the smaller of Linux and macOS.
const maxSocketPath = 103

// PrivateDir creates a team's directory of sockets, and refuses one that others own or can
// replace.
func PrivateDir(dir string) error { return tool.SecureRuntime(dir) }

func readPID(l team.Layout) string {
	b, err := regular.ReadFile(l.SupervisorPID())
	pid, _, perr := team.ParseSupervisorPID(b)
	if err != nil || perr != nil {
		return "unknown"
	}
	return strconv.Itoa(pid)
}
