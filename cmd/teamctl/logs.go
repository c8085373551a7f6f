package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/internal/memberlog"
	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

func newLogs(a *app) *cobra.Command {
	var (
		follow, raw bool
		tail        int
		since       string
	)
	cmd := &cobra.Command{
		Use:   "logs MEMBER",
		Short: "Print the output of a member; -f follows it",
		Long: `Print the output of a member, from its first byte on, or as far back as it is
kept (24 MiB). On a terminal it appears with its colours; elsewhere escape sequences
are taken out, unless --raw is given. --since is exact to about a second, and never
leaves anything out.`,
		Example: `  teamctl logs builder --tail 50
  teamctl logs -f builder
  teamctl logs builder --since 10m
  teamctl logs builder --raw > builder.log`,
		Args:              takes(1, 1, "the name of a member"),
		ValidArgsFunction: first(a.completeMembers(false)),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			var from time.Time
			if since != "" {
				if tail >= 0 {
					return usage(cmd, "--since and --tail exclude each other")
				}
				var ok bool
				if from, ok = parseSince(since, time.Now()); !ok {
					return usage(cmd, "--since takes a duration or a time, not %q", since).
						WithHint("for example 10m, 2h30m, 14:05 or 2006-01-02T15:04:05")
				}
			}
			return a.withTeam(ctx, func(t *tool.Team, _ tool.Caller) (err error) {
				if err := memberNames(ctx, t, args); err != nil {
					return err
				}
				m, err := t.Member(ctx, args[0])
				if err != nil {
					return err
				}
				l := &logReader{log: memberlog.New(t.Layout.Bundle(m.Name).Log()), member: args[0], out: a.out, raw: raw || a.out.screen != nil}
				if a.out.json {
					l.raw = raw
				}
				if follow { // the member may be about to start again
					var leave func(*error)
					ctx, leave = t.Attended(ctx)
					defer leave(&err)
				}
				return l.print(ctx, tail, from, follow)
			})
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "continue until interrupted")
	cmd.Flags().IntVar(&tail, "tail", -1, "print only the last N lines (default: all)")
	cmd.Flags().StringVar(&since, "since", "", "print only output of the last DURATION, or since a TIME")
	cmd.Flags().BoolVar(&raw, "raw", false, "include all escape sequences")
	return cmd
}

// parseSince parses "10m", "14:05" (the most recent such time) and dates.
func parseSince(s string, now time.Time) (time.Time, bool) {
	if d, err := time.ParseDuration(s); err == nil {
		return now.Add(-d), d >= 0
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, s, now.Location()); err == nil {
			return t, true
		}
	}
	for _, layout := range []string{"15:04:05", "15:04"} {
		c, err := time.ParseInLocation(layout, s, now.Location())
		if err != nil {
			continue
		}
		t := time.Date(now.Year(), now.Month(), now.Day(), c.Hour(), c.Minute(), c.Second(), 0, now.Location())
		if t.After(now) {
			t = t.AddDate(0, 0, -1)
		}
		return t, true
	}
	return time.Time{}, false
}

// logReader prints a member's log.
type logReader struct {
	log    *memberlog.Reader
	member string
	out    *output
	raw    bool

	held []byte // an incomplete line, unless raw
}

// print prints the log from the first line of the tail or from a time on and, with follow, what is
// appended until ctx ends.
func (l *logReader) print(ctx context.Context, tail int, since time.Time, follow bool) (err error) {
	defer func() {
		l.finish()
		if cerr := l.log.Close(); err == nil {
			err = cerr
		}
	}()
	if follow {
		if err := l.log.Watch(); err != nil {
			return team.Errorf(team.CodeUnavailable, "follow %s: %w", l.member, err).WithHint("teamctl doctor")
		}
	}
	switch {
	case !since.IsZero():
		err = l.log.StartSince(since)
	case tail >= 0:
		err = l.log.StartTail(tail)
	default:
		err = l.log.Start()
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) && follow: // it will be created
	case errors.Is(err, fs.ErrNotExist):
		return team.Errorf(team.CodeNotFound, "no output from %s yet", l.member).WithReason(team.ReasonNoLog).
			WithHint("teamctl ps shows whether it runs")
	case err != nil:
		return team.Errorf(team.CodeUnavailable, "read the log of %s: %w", l.member, err)
	}
	for {
		if err := l.more(); err != nil || !follow {
			return err
		}
		switch err := l.log.Wait(ctx); {
		case errors.Is(err, io.EOF):
			return nil // the team was deleted
		case err != nil && ctx.Err() == nil:
			return fmt.Errorf("follow %s: %w", l.member, err)
		case err != nil:
			return err
		}
	}
}

// more prints what was appended since.
func (l *logReader) more() error {
	buf := make([]byte, 64<<10)
	for l.out.failure() == nil {
		n, err := l.log.Read(buf)
		l.text(buf[:n])
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the log of %s: %w", l.member, err)
		}
	}
	return l.out.failure()
}

func (l *logReader) text(b []byte) {
	if len(b) == 0 {
		return
	}
	if l.raw && !l.out.json {
		l.out.text(string(b))
		return
	}
	l.held = append(l.held, b...)
	i := bytes.LastIndexByte(l.held, '\n')
	if i < 0 && len(l.held) < 1<<20 {
		return
	}
	if i < 0 {
		i = len(l.held) - 1
	}
	l.emit(string(l.held[:i+1]))
	l.held = append([]byte(nil), l.held[i+1:]...)
}

func (l *logReader) emit(text string) {
	if !l.raw {
		text = plain.Text(text)
	}
	if !l.out.json {
		l.out.text(text)
		return
	}
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		l.out.encode(map[string]string{"member": l.member, "line": line}, "")
	}
}

// finish prints an incomplete last line.
func (l *logReader) finish() {
	if len(l.held) > 0 {
		l.emit(string(l.held) + "\n")
		l.held = nil
	}
}
