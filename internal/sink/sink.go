// Package sink delivers a notice outside a team: to a command, a webhook, or
// the desktop. The gate is part of the delivery and cannot be disabled: only
// what is meant for outside is delivered, and nothing of the internal channel.
package sink

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/teamctl/teamctl/internal/run"
	"github.com/teamctl/teamctl/team"
)

// Internal is the channel of messages between agents. Nothing of it is ever
// delivered outside the team.
const Internal = team.ChannelInternal

// External is the gate: it reports whether a notice is wanted outside and is
// not of the internal channel.
func External(wantsDeliver bool, channel string) bool {
	return wantsDeliver && channel != Internal
}

// limit is the time limit of one delivery.
const limit = 15 * time.Second

// Kind says what a notice is about. A sink can be limited to some kinds.
type Kind string

// Kinds of notices. The zero Kind is a test, which every sink takes at any time.
const (
	Approval Kind = "approval" // a request waits for an answer
	Dialog   Kind = "dialog"   // a question at the screen of a member's program
	Member   Kind = "member"   // a member failed
	Task     Kind = "task"     // a task failed, or no member can take the ready ones
	Merge    Kind = "merge"    // a merge has conflicts or failed
	Mail     Kind = "mail"     // nothing tells what became of a message
	Limit    Kind = "limit"    // a provider takes no more for now
	Budget   Kind = "budget"   // most of a budget is used
	Done     Kind = "done"     // nothing is left to do
	Agent    Kind = "agent"    // what an agent tells the person
)

// Kinds returns every kind of notice.
func Kinds() []Kind {
	return []Kind{Approval, Dialog, Member, Task, Merge, Mail, Limit, Budget, Done, Agent}
}

// Notice is the content of a notice, passed as JSON to commands and webhooks.
// At is in Unix milliseconds.
type Notice struct {
	Team   string `json:"team"`
	What   string `json:"what"` // "approval.asked", "member.failed", ...
	Kind   Kind   `json:"kind,omitempty"`
	ID     string `json:"id,omitempty"`
	Title  string `json:"title"`
	Text   string `json:"text"`
	Select string `json:"select,omitempty"` // for teamctl ui --select
	Link   string `json:"link,omitempty"`   // to the same on the page
	Count  int    `json:"count,omitempty"`  // of notices that are told as this one; 0: it is one
	At     int64  `json:"at"`
}

// Sink is one destination. The zero value is none; use Parse.
type Sink struct {
	kind   string // "command", "webhook", "ntfy", "desktop"
	target string
	kinds  []Kind // that it takes; nil: all
	quiet  hours  // in which it takes none
}

// hours are a part of every day, in minutes from midnight; from may be after to.
type hours struct{ from, to int }

func (h hours) has(at time.Time) bool {
	minute := at.Hour()*60 + at.Minute()
	if h.from <= h.to {
		return h.from <= minute && minute < h.to
	}
	return minute >= h.from || minute < h.to
}

func (h hours) String() string {
	return fmt.Sprintf("%02d:%02d-%02d:%02d", h.from/60, h.from%60, h.to/60, h.to%60)
}

// Address returns the sink without its kinds and quiet hours, as Parse parses it.
func (s Sink) Address() string {
	if s.target == "" {
		return s.kind
	}
	return s.kind + ":" + s.target
}

// Masked returns the sink for logs: a URL without its path and query, and of a command its
// first word. The rest may be a secret, as the topic of ntfy is.
func (s Sink) Masked() string {
	if u, err := url.Parse(s.target); err == nil && u.Host != "" && s.kind != "command" {
		return s.kind + ":" + u.Scheme + "://" + u.Host + "/..."
	}
	word, rest, _ := strings.Cut(strings.TrimSpace(s.target), " ")
	switch {
	case s.target == "":
		return s.kind
	case rest == "" && !strings.Contains(word, "="):
		return s.kind + ":" + word
	case strings.Contains(word, "="):
		return s.kind + ":..."
	}
	return s.kind + ":" + word + " ..."
}

// String returns the form that Parse parses.
func (s Sink) String() string {
	var b strings.Builder
	if len(s.kinds) > 0 {
		b.WriteString("kinds=" + joined(s.kinds, ",") + " ")
	}
	if s.quiet != (hours{}) {
		b.WriteString("quiet=" + s.quiet.String() + " ")
	}
	b.WriteString(s.Address())
	return b.String()
}

// Takes reports whether the sink is meant for a notice at a time, which is local.
func (s Sink) Takes(n Notice, at time.Time) bool {
	return n.Kind == "" || (len(s.kinds) == 0 || slices.Contains(s.kinds, n.Kind)) && !s.quiet.has(at)
}

// Parse parses "command:SHELL COMMAND", "webhook:URL", "ntfy:URL" or "desktop", each behind
// "kinds=KIND,... " and "quiet=22:00-07:00 " if it has any. URLs are https, or http on this
// machine; that of ntfy ends in the topic.
func Parse(spec string) (s Sink, err error) {
	rest := spec
	for {
		word, after, _ := strings.Cut(rest, " ")
		name, value, ok := strings.Cut(word, "=")
		if !ok || name != "kinds" && name != "quiet" {
			break
		}
		rest = strings.TrimLeft(after, " ")
		if name == "quiet" {
			s.quiet, err = parseHours(value)
		} else {
			s.kinds, err = parseKinds(value)
		}
		if err != nil {
			return Sink{}, err
		}
	}
	return s, s.parse(rest)
}

func parseHours(text string) (h hours, err error) {
	from, to, _ := strings.Cut(text, "-")
	for _, end := range []struct {
		text string
		at   *int
	}{{from, &h.from}, {to, &h.to}} {
		at, err := time.Parse("15:04", end.text)
		if err != nil {
			return hours{}, fmt.Errorf("invalid quiet hours %q: want 22:00-07:00", text)
		}
		*end.at = at.Hour()*60 + at.Minute()
	}
	if h.from == h.to {
		return hours{}, fmt.Errorf("invalid quiet hours %q: they begin when they end", text)
	}
	return h, nil
}

func parseKinds(text string) (list []Kind, err error) {
	for k := range strings.SplitSeq(text, ",") {
		if !slices.Contains(Kinds(), Kind(k)) {
			return nil, fmt.Errorf("invalid kind of notice %q: want %s", k, joined(Kinds(), ", "))
		}
		list = append(list, Kind(k))
	}
	return list, nil
}

func joined(list []Kind, by string) string {
	words := make([]string, len(list))
	for i, k := range list {
		words[i] = string(k)
	}
	return strings.Join(words, by)
}

func (s *Sink) parse(spec string) error {
	kind, target, _ := strings.Cut(spec, ":")
	s.kind, s.target = kind, target
	switch kind {
	case "desktop":
		if target != "" {
			return fmt.Errorf("%q: the desktop takes no address", spec)
		}
	case "command":
		if strings.TrimSpace(target) == "" {
			return fmt.Errorf("%q has no command", spec)
		}
	case "webhook":
		return checkURL(target)
	case "ntfy":
		if _, topic := ntfyTopic(target); topic == "" {
			return fmt.Errorf("%q has no topic", spec)
		}
		return checkURL(target)
	default:
		return fmt.Errorf("%q is neither command:, webhook:, ntfy: nor desktop", spec)
	}
	return nil
}

// ntfyTopic takes the topic, the last part of the path, off a URL.
func ntfyTopic(target string) (server, topic string) {
	u, err := url.Parse(target)
	if err != nil {
		return target, ""
	}
	at := strings.LastIndexByte(u.Path, '/')
	topic = u.Path[at+1:]
	u.Path, u.RawPath = u.Path[:at+1], ""
	return u.String(), topic
}

// ntfy is a notice as the server takes it: published as JSON, since headers are ASCII. What
// waits for an answer has a higher priority than what only is so.
func ntfy(topic string, n Notice) ([]byte, error) {
	priority, tag := 3, "information_source"
	switch n.Kind {
	case Approval, Dialog:
		priority, tag = 4, "raised_hand"
	case Member, Task, Merge, Mail:
		priority, tag = 4, "x"
	case Limit, Budget:
		tag = "hourglass"
	case Done:
		tag = "white_check_mark"
	case Agent:
		tag = "speech_balloon"
	}
	return json.Marshal(struct {
		Topic    string   `json:"topic"`
		Title    string   `json:"title"`
		Message  string   `json:"message"`
		Priority int      `json:"priority"`
		Tags     []string `json:"tags"`
		Click    string   `json:"click,omitempty"`
	}{topic, n.Title, n.Text, priority, []string{tag}, n.Link})
}

func checkURL(target string) error {
	u, err := url.Parse(target)
	if err != nil {
		return fmt.Errorf("%q is not a URL: %w", target, err)
	}
	switch {
	case u.Hostname() == "" || u.User != nil:
		return fmt.Errorf("%q must have a host, and no user name or password", target)
	case u.Scheme == "https":
		return nil
	case u.Scheme != "http":
		return fmt.Errorf("%q is not https", target)
	}
	ip, err := netip.ParseAddr(u.Hostname())
	if u.Hostname() != "localhost" && (err != nil || !ip.IsLoopback()) {
		return fmt.Errorf("%q names another machine without https", target)
	}
	return nil
}

// Deliver delivers a notice to the sink if the gate lets it pass, and reports
// whether it did. Commands are recorded in book while they run.
func (s Sink) Deliver(ctx context.Context, book run.Book, wantsDeliver bool, channel string, n Notice) (sent bool, err error) {
	if !External(wantsDeliver, channel) {
		return false, nil
	}
	body, err := json.Marshal(n)
	if err != nil {
		return false, fmt.Errorf("encode the notice: %w", err)
	}
	switch s.kind {
	case "command":
		err = runCommand(ctx, book, run.Cmd{Command: s.target, Stdin: append(body, '\n')})
	case "webhook":
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		err = post(ctx, s.target, body)
	case "ntfy":
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		server, topic := ntfyTopic(s.target)
		if body, err = ntfy(topic, n); err == nil {
			err = post(ctx, server, body)
		}
	case "desktop":
		name, args := desktop(n)
		err = runCommand(ctx, book, run.Cmd{Command: `exec "$0" "$@"`, Args: append([]string{name}, args...)})
	default:
		err = errors.New("no sink is configured")
	}
	if err != nil {
		if at := new(url.Error); errors.As(err, &at) {
			err = at.Err // whose text has no address
		}
		return false, fmt.Errorf("notify %s: %w", s.Masked(), err)
	}
	return true, nil
}

// desktop returns the command that shows a notice; its texts are arguments and
// never code.
func desktop(n Notice) (string, []string) {
	if runtime.GOOS == "darwin" {
		return "osascript", []string{
			"-e", "on run argv", "-e", "display notification (item 2 of argv) with title (item 1 of argv)", "-e", "end run", n.Title, n.Text,
		}
	}
	return "notify-send", []string{"--app-name=teamctl", "--", n.Title, unmarked.Replace(n.Text)}
}

// unmarked has what an agent wrote shown as text, and not as the markup that the body of a notice may have
// (Desktop Notifications Specification, "Markup").
var unmarked = strings.NewReplacer("&", "&amp;", "<", "&lt;")

// maxErr limits how much of a command's standard error is kept, in bytes.
const maxErr = 200

// grace is the time between SIGTERM and SIGKILL.
const grace = 2 * time.Second

// runCommand runs a command and ends everything that it has started.
func runCommand(ctx context.Context, book run.Book, c run.Cmd) error {
	scope, err := book.Open(run.Notice, "")
	if err != nil {
		return err
	}
	var said head
	c.Env, c.Stderr, c.Limit, c.Grace = os.Environ(), &said, limit, grace
	end, err := scope.Run(ctx, c)
	if err = errors.Join(err, scope.Close()); err != nil || end.OK() {
		return err
	}
	return errors.New(strings.TrimSuffix(end.Why(limit)+": "+strings.TrimSpace(said.String()), ": "))
}

// head keeps the first maxErr bytes written to it.
type head struct{ strings.Builder }

func (h *head) Write(p []byte) (int, error) {
	_, _ = h.Builder.Write(p[:min(len(p), maxErr-h.Len())])
	return len(p), nil
}

// post sends the notice. It does not follow a redirect, which could lead
// anywhere. A target that is allowed without https must also be on this machine
// when it is dialled.
func post(ctx context.Context, target string, body []byte) error {
	local := strings.HasPrefix(target, "http:")
	dialer := &net.Dialer{Timeout: limit, Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err == nil && local && !at.Addr().Unmap().IsLoopback() {
			err = fmt.Errorf("%s is not on this machine", address)
		}
		return err
	}}
	transport := &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}
	if !local {
		transport.Proxy = http.ProxyFromEnvironment
	}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10))
	if err := res.Body.Close(); err != nil {
		return err
	}
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return fmt.Errorf("the server answered %s", res.Status)
	}
	return nil
}
