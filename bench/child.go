package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Some things are measured with many processes: bench starts itself as their
// program, with the name of the work in this variable.
const envChild = "TEAMCTL_BENCH_CHILD"

// childWork is what a process of a benchmark does once: one claim, one message. It
// returns false when there is no more to do, and what it took where that is not all
// of the time. What it needs is made before the clock starts.
type childWork func(ctx context.Context, args childArgs) (once func() (took time.Duration, more bool, err error), done func() error, err error)

// children is every work by its name.
var children = map[string]childWork{
	"claim": childClaim,
	"ping":  childPing,
	"naive": childNaive,
	"post":  childPost,
	"merge": childMerge,
	"copy":  childCopy,
}

// agents are works without orders: programs for teammates to be.
var agents = map[string]func() error{chatChild: chat, paintChild: paint, pongChild: pong, lineChild: moveLine}

// childArgs is what a process is told.
type childArgs struct {
	Home    string        `json:"home"`
	Number  int           `json:"number"`
	Direct  bool          `json:"direct"` // not through the supervisor
	For     time.Duration `json:"for"`
	Most    int           `json:"most"` // operations at most; 0: as many as it can
	Session string        `json:"session"`
}

// childResult is what it says at the end. Times are sorted.
type childResult struct {
	Ops   int             `json:"ops"`
	Times []time.Duration `json:"times"`
	Busy  time.Duration   `json:"busy"` // from the first to the last
	CPU   time.Duration   `json:"cpu"`  // of this process, user and system, from the first to the last
}

func childMain(name string) error {
	if agent := agents[name]; agent != nil {
		return agent()
	}
	in := bufio.NewReader(os.Stdin)
	line, err := in.ReadBytes('\n')
	if err != nil {
		return err
	}
	var args childArgs
	if err := json.Unmarshal(line, &args); err != nil {
		return err
	}
	ctx := context.Background()
	once, done, err := children[name](ctx, args)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	if _, err := in.ReadBytes('\n'); err != nil { // all start together
		return err
	}
	var res childResult
	spent, err := spentCPU()
	if err != nil {
		return err
	}
	start := time.Now()
	for end := start.Add(args.For); time.Now().Before(end) && (args.Most == 0 || res.Ops < args.Most); res.Ops++ {
		began := time.Now()
		took, more, err := once()
		if err != nil {
			return err
		}
		if !more {
			break
		}
		if took == 0 {
			took = time.Since(began)
		}
		res.Times = append(res.Times, took)
	}
	res.Busy = time.Since(start)
	after, err := spentCPU()
	if err != nil {
		return err
	}
	res.CPU = after - spent
	slices.Sort(res.Times)
	return errors.Join(done(), json.NewEncoder(os.Stdout).Encode(res))
}

// crowd runs n processes with the same work at the same time.
func crowd(ctx context.Context, work string, n int, args childArgs) ([]childResult, error) {
	type proc struct {
		cmd *exec.Cmd
		in  io.WriteCloser
		out *bufio.Reader
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	procs := make([]proc, n)
	defer func() {
		for _, p := range procs {
			if p.cmd != nil && p.cmd.ProcessState == nil {
				_ = p.cmd.Process.Kill()
				_ = p.cmd.Wait()
			}
		}
	}()
	for i := range procs {
		cmd := exec.CommandContext(ctx, exe)
		cmd.Env = append(os.Environ(), envChild+"="+work)
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			return nil, err
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			return nil, err
		}
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		procs[i] = proc{cmd, in, bufio.NewReader(out)}
		args.Number = i
		if err := json.NewEncoder(in).Encode(args); err != nil {
			return nil, err
		}
	}
	for _, p := range procs {
		if _, err := p.out.ReadString('\n'); err != nil {
			return nil, fmt.Errorf("a process of %q did not start: %w", work, err)
		}
	}
	for _, p := range procs {
		if _, err := io.WriteString(p.in, "go\n"); err != nil {
			return nil, err
		}
	}
	results := make([]childResult, n)
	for i, p := range procs {
		if err := json.NewDecoder(p.out).Decode(&results[i]); err != nil {
			return nil, fmt.Errorf("a process of %q: %w", work, err)
		}
		if err := p.cmd.Wait(); err != nil {
			return nil, fmt.Errorf("a process of %q: %w", work, err)
		}
	}
	return results, nil
}

// spentCPU is the processor time of this process so far.
func spentCPU() (time.Duration, error) {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0, err
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}

// clientsCPU is what processes took together.
func clientsCPU(rs []childResult) (all time.Duration) {
	for _, r := range rs {
		all += r.CPU
	}
	return all
}

// sum is what processes did together.
func sum(rs []childResult) (ops int, times []time.Duration, fairness float64) {
	least, most := rs[0].Ops, rs[0].Ops
	for _, r := range rs {
		ops += r.Ops
		times = append(times, r.Times...)
		least, most = min(least, r.Ops), max(most, r.Ops)
	}
	if most > 0 {
		fairness = float64(least) / float64(most)
	}
	return ops, times, fairness
}
