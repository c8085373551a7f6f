package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/internal/view/page"
	"github.com/teamctl/teamctl/team"
)

const (
	// tick is the shortest time between two events to one client.
	tick = 250 * time.Millisecond
	// alive is how often a client that gets no events gets a comment, which shows a connection
	// that has ended, and after which its session is looked at.
	alive = 20 * time.Second
	// partHeader marks requests of the script for the part of a document that changes.
	partHeader = "X-Teamctl-Part"
)

func (s *Server) teams(v visit) {
	list, err := s.glances(v.Context())
	if err != nil {
		s.fail(v, err)
		return
	}
	part := v.Header.Get(partHeader) != "" // an open list stays one
	if len(list) == 1 && list[0].Unread == "" && !part {
		http.Redirect(v.w, v.Request, "/t/"+url.PathEscape(list[0].Team), http.StatusSeeOther)
		return
	}
	s.write(v.w, http.StatusOK, page.Doc{Kind: "teams", Teams: list, CSRF: v.csrf, Now: time.Now(), Part: part})
}

// home leads to what a notification has named, or to what needs a person.
func (s *Server) home(v visit) {
	to := "/t/" + url.PathEscape(v.PathValue("team")) + "/"
	kind, id, ok := strings.Cut(v.URL.Query().Get("select"), ":")
	switch {
	case ok && (kind == "approval" || kind == "task"):
		to += kind + "/" + url.PathEscape(id)
	case kind != "":
		to += "member/" + url.PathEscape(kind)
	default:
		to += "needs"
	}
	http.Redirect(v.w, v.Request, to, http.StatusSeeOther)
}

// show answers with a document, or with what of it changes, which the script asks for.
func (s *Server) show(v visit) {
	name := v.PathValue("team")
	t, err := s.open(v.Context(), name)
	if err != nil {
		s.fail(v, err)
		return
	}
	x, err := s.snapshot(v.Context(), name, t)
	if err != nil {
		s.fail(v, err)
		return
	}
	d := page.Doc{Kind: v.PathValue("view"), Team: name, Snapshot: x, CSRF: v.csrf, ReadOnly: s.ReadOnly, Now: time.Now(), Part: v.Header.Get(partHeader) != ""}
	if err := s.fill(v, t, &d); err != nil {
		s.fail(v, err)
		return
	}
	s.write(v.w, http.StatusOK, d)
}

var errNoPage = errors.New("there is no such page")

// fill reads what a view shows beside the snapshot.
func (s *Server) fill(v visit, t view.Team, d *page.Doc) (err error) {
	ctx, id := v.Context(), v.PathValue("id")
	d.ID = id
	switch kind := d.Kind; {
	case id == "" && (kind == "needs" || kind == "members" || kind == "board"):
	case id == "" && kind == "tasks":
		d.Body, err = taskList(v, t, d.Snapshot)
	case id == "" && kind == "graph":
		deps, err := t.Dependencies(ctx)
		if err != nil {
			return err
		}
		g, err := view.NewGraph(d.Snapshot.Tasks, deps, d.Now)
		d.Body = map[string]any{"SVG": "", "Why": ""}
		if err != nil {
			d.Body = map[string]any{"SVG": "", "Why": err.Error()}
		} else if len(g.Nodes) > 0 {
			d.Body = map[string]any{"SVG": g.SVG(d.Now), "Why": ""}
		}
	case id == "" && kind == "time":
		d.Body, err = t.Timeline(ctx)
	case id == "" && kind == "mail":
		d.Body, err = t.Mail(ctx)
	case id == "" && kind == "usage":
		d.Body, err = t.Usage(ctx)
	case kind == "changes" && id == "":
		d.Body, err = t.Merges(ctx)
	case kind == "changes":
		var c view.Changes
		c, err = t.Changes(ctx, id, "")
		d.Body = page.NewDiff(c)
	case kind == "across" && id != "":
		file := v.URL.Query().Get("file")
		if file == "" {
			return errNoPage
		}
		var list []view.Across
		list, err = view.ReadAcross(ctx, t, file, id)
		d.Body = page.NewAcross(file, id, list)
	case kind == "approval" && id != "":
		n, perr := strconv.ParseInt(id, 10, 64)
		if perr != nil {
			return errNoPage
		}
		d.Body, err = t.Request(ctx, n)
	case (kind == "member" || kind == "screen") && id != "":
		d.Body, err = t.Member(ctx, id)
	case kind == "task" && id != "":
		d.Body, err = t.Task(ctx, id)
	default:
		return errNoPage
	}
	return err
}

// taskList reads the tasks that a visit asks for: those that a filter finds, or those after a place.
func taskList(v visit, t view.Team, s view.Snapshot) (page.TaskList, error) {
	l := page.TaskList{Filter: v.URL.Query().Get("filter"), After: v.URL.Query().Get("after")}
	if l.After == "" {
		for _, x := range s.Tasks {
			if l.Filter == "" || x.Active() && view.Matches(x.Words(s.AgentOf(x.Owner)), l.Filter) {
				l.Tasks = append(l.Tasks, x)
			}
		}
	}
	if l.Filter == "" && l.After == "" {
		l.Next = s.End()
		return l, nil
	}
	p, err := t.TaskPage(v.Context(), view.TaskQuery{Filter: l.Filter, After: l.After, Most: tasksShown})
	l.Tasks, l.Next = append(l.Tasks, p.Tasks...), p.Next
	return l, err
}

// fail tells a client why it gets nothing.
func (s *Server) fail(v visit, err error) {
	status := http.StatusInternalServerError
	switch {
	case v.Context().Err() != nil:
		return
	case errors.Is(err, errNoTeam), errors.Is(err, errNoPage), team.IsCode(err, team.CodeNotFound):
		status = http.StatusNotFound
	case team.IsCode(err, team.CodeInvalid):
		status = http.StatusBadRequest
	case team.IsCode(err, team.CodeConflict):
		status = http.StatusConflict
	case team.IsCode(err, team.CodeDenied):
		status = http.StatusForbidden
	case team.IsCode(err, team.CodeUnavailable):
		status = http.StatusServiceUnavailable
	}
	if v.Method == http.MethodPost {
		reply(v.w, status, map[string]string{"error": plain.Text(err.Error()), "hint": plain.Text(team.HintOf(err))})
		return
	}
	s.write(v.w, status, page.Doc{Kind: "closed", Team: v.PathValue("team"), Body: err.Error(), CSRF: v.csrf})
}

func reply(w http.ResponseWriter, status int, x any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(x) // a client that has gone
}

// stream begins a stream of server-sent events. send returns false when the client has gone or
// its session has ended; rest waits for the next moment that one may be sent.
func (s *Server) stream(v visit) (send func(event string, x any) bool) {
	h := v.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	v.w.WriteHeader(http.StatusOK)
	c := http.NewResponseController(v.w)
	return func(event string, x any) bool {
		text := ": still here\n\n"
		if event != "" {
			data, err := json.Marshal(x)
			if err != nil {
				return false
			}
			text = fmt.Sprintf("event: %s\ndata: %s\n\n", event, data)
		}
		if _, ok := s.Sessions.Session(v.Context(), v.token); !ok {
			return false
		}
		_ = c.SetWriteDeadline(time.Now().Add(alive)) // one that does not read is given up
		if _, err := fmt.Fprint(v.w, text); err != nil {
			return false
		}
		return c.Flush() == nil
	}
}

// events tells a client that the team has changed, in one line; it asks for what it shows.
func (s *Server) events(v visit) {
	name := v.PathValue("team")
	t, err := s.open(v.Context(), name)
	if err != nil {
		s.fail(v, err)
		return
	}
	h, leave := s.watch(v.Context(), name, t)
	defer leave()
	changes(v.Context(), h, s.stream(v), func(x view.Snapshot) any {
		return map[string]any{"line": view.GlanceOf(x).String(), "needs": len(view.Waiting(x.Needs))}
	})
}

// teamsEvents tells a client that a line of the list of teams has changed.
func (s *Server) teamsEvents(v visit) {
	h, leave := s.watchTeams(v.Context())
	defer leave()
	var last []string
	changes(v.Context(), h, s.stream(v), func(list []view.Glance) any {
		lines := make([]string, len(list))
		for i, g := range list {
			lines[i] = g.String()
		}
		if last != nil && slices.Equal(last, lines) {
			return nil
		}
		last = lines
		return map[string]any{"lines": lines}
	})
}

// changes sends the changes of a hub as one makes events of them; nil is not sent.
func changes[T any](ctx context.Context, h *hub[T], send func(event string, x any) bool, one func(T) any) {
	for {
		x, next, err := h.get()
		switch {
		case err != nil:
			send("lost", map[string]string{"why": plain.Text(err.Error())})
			return
		case x != nil:
			if event := one(*x); event != nil && !send("change", event) {
				return
			}
		}
		if !rest(ctx, next, func() bool { return send("", nil) }) {
			return
		}
	}
}

// rest waits for a tick and then for next; still is called now and then meanwhile.
func rest(ctx context.Context, next <-chan struct{}, still func() bool) bool {
	pause := time.NewTimer(tick)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-ctx.Done():
		return false
	}
	for {
		pause.Reset(alive)
		select {
		case <-next:
			return true
		case <-pause.C:
			if !still() {
				return false
			}
		case <-ctx.Done():
			return false
		}
	}
}

// screen shows the screen of a member as text with classes.
func (s *Server) screen(v visit) {
	t, err := s.open(v.Context(), v.PathValue("team"))
	if err != nil {
		s.fail(v, err)
		return
	}
	if _, err := t.Member(v.Context(), v.PathValue("id")); err != nil {
		s.fail(v, err)
		return
	}
	send := s.stream(v)
	ctx, cancel := context.WithCancel(v.Context())
	defer cancel()
	frames := make(chan view.Frame, 1)
	done := make(chan error, 1)
	go func() {
		done <- t.Screen(ctx, v.PathValue("id"), func(f view.Frame) {
			select {
			case <-frames: // an older one that nobody has taken
			default:
			}
			frames <- f
		})
	}()
	defer func() {
		cancel()
		select {
		case <-frames: // it may wait to give one
		default:
		}
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			s.log("show a screen: %v", err)
		}
	}()
	pause := time.NewTimer(alive)
	defer pause.Stop()
	for {
		select {
		case f := <-frames:
			if !send("screen", screenOf(f)) || !wait(ctx, tick) {
				return
			}
			pause.Reset(alive)
		case err := <-done:
			done <- err
			select {
			case f := <-frames: // the last one, which came while the previous one was shown
				send("screen", screenOf(f))
			default:
			}
			why := "the screen is no longer shown"
			if err != nil {
				why = plain.Text(err.Error())
			}
			send("lost", map[string]string{"why": why})
			return
		case <-pause.C:
			if !send("", nil) {
				return
			}
			pause.Reset(alive)
		case <-ctx.Done():
			return
		}
	}
}

// screenOf returns a frame as the page gets it.
func screenOf(f view.Frame) map[string]any {
	return map[string]any{"lines": page.Screen(f.Lines), "ended": plain.Line(f.Ended)}
}

func wait(ctx context.Context, d time.Duration) bool {
	pause := time.NewTimer(d)
	defer pause.Stop()
	select {
	case <-pause.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// deed is what the script asks for.
type deed struct {
	Action   string `json:"action"`
	Member   string `json:"member"`
	Task     string `json:"task"`
	Message  string `json:"message"`
	Approval int64  `json:"approval"`
	Seen     string `json:"seen"`
	Path     string `json:"path"` // of a file that the member has changed; Lines, Old and Comment are of it
	Lines    string `json:"lines"`
	Old      bool   `json:"old"`
	Comment  string `json:"comment"`
	Text     string `json:"text"`
	Again    bool   `json:"again"`   // the second tap
	Preview  bool   `json:"preview"` // what the action would do is asked for
}

// do carries out an action that the page offers for its target as it is now.
func (s *Server) do(v visit) {
	var in deed
	dec := json.NewDecoder(v.Body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		s.fail(v, team.Errorf(team.CodeInvalid, "the request cannot be read: %w", err))
		return
	}
	if s.ReadOnly {
		s.fail(v, team.Errorf(team.CodeDenied, "this page only shows").WithHint("it was started with --read-only"))
		return
	}
	a, ok := view.ActionByID(in.Action)
	if !ok || !a.Page {
		s.fail(v, team.Errorf(team.CodeNotFound, "the page has no action %q", in.Action))
		return
	}
	name := v.PathValue("team")
	t, err := s.open(v.Context(), name)
	if err != nil {
		s.fail(v, err)
		return
	}
	target, err := s.target(v.Context(), name, t, a, in)
	if err != nil {
		s.fail(v, err)
		return
	}
	if !slices.ContainsFunc(view.ActionsOn(target), func(x view.Action) bool { return x.ID == a.ID }) {
		s.fail(v, team.Errorf(team.CodeConflict, "%s is not possible any more: nothing was done", a.Title))
		return
	}
	if a.Asks != "" && strings.TrimSpace(in.Text) == "" && a.ID != "edit-comment" && a.ID != "edit-plan-comment" {
		s.fail(v, team.Errorf(team.CodeInvalid, "%s needs a text: %s", a.Title, a.Asks))
		return
	}
	d := target.Deed(a)
	d.Seen, d.Text = in.Seen, in.Text
	ctx := v.Context()
	switch {
	case in.Preview != (a.Preview && in.Seen == ""):
		s.fail(v, team.Errorf(team.CodeConflict, "%s takes an answer to what it would do: nothing was done", a.Title))
		return
	case in.Preview:
		d.Preview = true
	case a.Preview:
		ctx = context.WithoutCancel(ctx) // it may take longer than a phone stays awake
	}
	if a.ID == "approve" || a.ID == "approve-always" {
		r, err := t.Request(v.Context(), d.Approval)
		if err != nil {
			s.fail(v, err)
			return
		}
		if r.Command != "" && !in.Again {
			s.fail(v, team.Errorf(team.CodeConflict, "a command is approved by a second tap"))
			return
		}
	}
	done, err := t.Do(ctx, d)
	if err != nil {
		s.fail(v, err)
		return
	}
	reply(v.w, http.StatusOK, map[string]string{"said": plain.Text(done.Said), "comment": done.Comment, "seen": done.Seen})
}

// target finds what an action is about.
func (s *Server) target(ctx context.Context, name string, t view.Team, a view.Action, in deed) (view.Target, error) {
	x, err := s.snapshot(ctx, name, t)
	if err != nil {
		return view.Target{}, err
	}
	gone := func(what string) (view.Target, error) {
		return view.Target{}, team.Errorf(team.CodeConflict, "%s is no longer there: nothing was done", what)
	}
	switch {
	case in.Message != "":
		list, err := t.Mail(ctx)
		i := slices.IndexFunc(list, func(m view.Message) bool { return m.ID == in.Message })
		if err != nil || i < 0 {
			return view.Target{}, errors.Join(err, errNoPage)
		}
		return view.Target{Thing: view.OnMessage, Message: &list[i]}, nil
	case in.Approval != 0:
		i := slices.IndexFunc(x.Needs, func(n view.Need) bool { return n.Approval == in.Approval })
		if i < 0 {
			r, err := t.Request(ctx, in.Approval)
			if err == nil && r.State != "pending" {
				return view.Target{}, team.Errorf(team.CodeConflict, "%s %d of %s is already %s by %s", r.Kind, r.ID, r.Member, r.State, r.AnsweredBy)
			}
			return gone(fmt.Sprintf("request %d", in.Approval))
		}
		target := view.Target{Thing: view.OnApproval, Need: &x.Needs[i]}
		if x.Needs[i].Kind == view.NeedPlan {
			target.Change, err = onPlan(ctx, t, in)
		}
		return target, err
	case in.Task != "":
		d, err := t.Task(ctx, in.Task)
		return view.Target{Thing: view.OnTask, Task: &d.Task}, err
	case in.Member != "":
		i := slices.IndexFunc(x.Members, func(m view.Member) bool { return m.Name == in.Member })
		if i < 0 {
			return gone("member " + in.Member)
		}
		if in.Path != "" {
			c, err := change(ctx, t, in)
			return view.Target{Thing: view.OnChange, Member: &x.Members[i], Change: c}, err
		}
		return view.Target{Thing: view.OnMember, Member: &x.Members[i]}, nil
	}
	return view.Target{Thing: view.OnTeam}, nil
}

// onPlan finds the place in a plan that an action is about.
func onPlan(ctx context.Context, t view.Team, in deed) (*view.Change, error) {
	r, err := t.Request(ctx, in.Approval)
	if err != nil {
		return nil, err
	}
	c := r.OnPlan(in.Lines, 0)
	if in.Comment == "" {
		return c, nil
	}
	for _, x := range r.Comments {
		if x.Name == in.Comment {
			c.Comment = &x
			return c, nil
		}
	}
	return nil, team.Errorf(team.CodeConflict, "comment %s is no longer there: nothing was done", in.Comment)
}

// change finds the place in a member's changes that an action is about.
func change(ctx context.Context, t view.Team, in deed) (*view.Change, error) {
	all, err := t.Changes(ctx, in.Member, "")
	if err != nil {
		return nil, err
	}
	c := &view.Change{Path: in.Path, Lines: in.Lines, Old: in.Old, Drafts: all.Drafts(), Reviewed: all.Reviewed[in.Path]}
	if in.Comment == "" {
		return c, nil
	}
	for _, x := range all.Comments {
		if x.Name == in.Comment && x.Path == in.Path {
			c.Comment = &x
			return c, nil
		}
	}
	return nil, team.Errorf(team.CodeConflict, "comment %s is no longer there: nothing was done", in.Comment)
}
