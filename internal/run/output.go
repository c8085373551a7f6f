package run

import (
	"io"
	"os"
	"os/exec"
	"time"
)

// output copies what a command and everything that it has started write. The pipes are
// our own: those of os/exec are closed a while after the exit of the command, and what
// its other processes write until they are ended would be lost.
type output struct{ streams []*stream }

type stream struct {
	to   io.Writer
	r, w *os.File
	done chan struct{} // everything has been copied
}

// newOutput connects a command that is to be started; nil is /dev/null.
func newOutput(cmd *exec.Cmd, stdout, stderr io.Writer) (*output, error) {
	o := &output{}
	pipe := func(to io.Writer) (io.Writer, error) {
		if to == nil {
			return nil, nil
		}
		r, w, err := os.Pipe()
		if err != nil {
			o.drop()
			return nil, err
		}
		o.streams = append(o.streams, &stream{to, r, w, make(chan struct{})})
		return w, nil
	}
	var err error
	if cmd.Stdout, err = pipe(stdout); err != nil {
		return nil, err
	}
	if cmd.Stderr = cmd.Stdout; stderr != stdout {
		cmd.Stderr, err = pipe(stderr)
	}
	return o, err
}

// drop is for a command that has not started.
func (o *output) drop() {
	for _, s := range o.streams {
		_, _ = s.w.Close(), s.r.Close()
	}
}

// start copies the output of the command, which has started.
func (o *output) start() {
	for _, s := range o.streams {
		_ = s.w.Close()
		go func() {
			defer close(s.done)
			if _, err := io.Copy(s.to, s.r); err != nil {
				_, _ = io.Copy(io.Discard, s.r) // a writer that fails must not stop the command
			}
		}()
	}
}

// wait waits until no process holds the output, for limit at most.
func (o *output) wait(limit time.Duration) {
	t := time.NewTimer(limit)
	defer t.Stop()
	for _, s := range o.streams {
		select {
		case <-s.done:
		case <-t.C:
			return
		}
	}
}

// finish reads what is left, for limit at most: a detached process may hold the output
// for as long as it lives.
func (o *output) finish(limit time.Duration) {
	o.wait(limit)
	for _, s := range o.streams {
		_ = s.r.SetReadDeadline(time.Unix(1, 0))
		<-s.done
		_ = s.r.Close()
	}
}
