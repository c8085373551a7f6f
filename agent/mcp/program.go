package mcp

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/teamctl/teamctl/internal/childattr"
	"github.com/teamctl/teamctl/internal/run"
	"github.com/teamctl/teamctl/team"
)

// grace is how long a program may take to exit after the end of its input, and after each signal.
const grace = 2 * time.Second

// program is a server on standard input and output.
type program struct {
	in         io.WriteCloser
	out        io.ReadCloser
	generation string
	ended      chan struct{}
	words      *lastWords
}

// lastWords keeps the end of a program's standard error.
type lastWords struct {
	mu   sync.Mutex
	text []byte
}

// maxWords is the maximum number of bytes kept.
const maxWords = 400

func (w *lastWords) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, b...)
	w.text = w.text[max(0, len(w.text)-maxWords):]
	return len(b), nil
}

// add adds the kept text to an error.
func (w *lastWords) add(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := strings.Join(strings.Fields(strings.ToValidUTF8(string(w.text), "")), " ")
	if text == "" {
		return err
	}
	return fmt.Errorf("%w; it wrote: %s", err, text)
}

// startProgram starts a program in a session of its own. It ends with this process, however this
// process ends.
func startProgram(s team.MCPServer, o *Options) (*program, error) {
	cmd := exec.Command(s.Command[0], s.Command[1:]...)
	p := &program{generation: uuid.NewString(), ended: make(chan struct{}), words: &lastWords{}}
	cmd.Dir, cmd.Env, cmd.Stderr = o.Dir, environ(s, o, p.generation), p.words
	if o.Stderr != nil {
		cmd.Stderr = io.MultiWriter(p.words, o.Stderr)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = grace // for standard error, which leftover processes may keep open
	// Own pipes: those of exec.Cmd are closed under a reader when the program exits.
	childIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, childOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, childIn.Close(), in.Close())
	}
	cmd.Stdin, cmd.Stdout = childIn, childOut
	p.in, p.out = in, out
	ended, err := childattr.Start(cmd, o.Enter)
	_, _ = childIn.Close(), childOut.Close()
	if err != nil {
		return nil, errors.Join(err, in.Close(), out.Close())
	}
	go func() {
		<-ended //nolint:errcheck // its status is not used
		close(p.ended)
	}()
	return p, nil
}

// environ returns the environment of a program.
func environ(s team.MCPServer, o *Options, generation string) []string {
	env := slices.DeleteFunc(slices.Clone(o.Env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(o.Withhold, name)
	})
	for k, v := range s.Env {
		env = append(env, k+"="+v)
	}
	slices.Sort(env[len(env)-len(s.Env):])
	return append(env, team.EnvCommand+"="+generation, team.EnvDetached+"=")
}

// end ends the program and everything that it has started.
func (p *program) end() {
	_ = p.in.Close() // asks it to exit
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-p.ended:
	case <-t.C:
	}
	_ = run.End(nil, p.generation, grace) // nothing more can be done about processes that survive this
	<-p.ended
	_ = p.out.Close()
}
