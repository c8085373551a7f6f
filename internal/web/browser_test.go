package web

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/internal/web/webtest"
	"github.com/teamctl/teamctl/team"
)

// pages are the addresses of all kinds of documents.
var pages = []string{
	"/t/demo/needs", "/t/demo/members", "/t/demo/tasks", "/t/demo/board", "/t/demo/graph", "/t/demo/time", "/t/demo/mail", "/t/demo/changes", "/t/demo/usage",
	"/t/demo/approval/1", "/t/demo/member/ann", "/t/demo/task/5", "/t/demo/changes/ann", "/t/demo/across/ann?file=x", "/t/demo/screen/ann",
}

// browse makes a page, and a tab that is logged in by a link as it is printed.
func browse(t *testing.T, b *webtest.Browser, k webtest.Kind) (*rig, *webtest.Tab) {
	t.Helper()
	r := newRig(t)
	tab := b.Tab(t, k, webtest.Private())
	link := enter(r, tab)
	if status := tab.Status(link); status != http.StatusForbidden {
		t.Errorf("the code logs in again: %d", status)
	}
	tab.Go(r.srv.URL)
	return r, tab
}

// enter logs in, and waits for where that leads to.
func enter(r *rig, tab *webtest.Tab) (link string) {
	r.Helper()
	link = r.srv.URL + "/login?code=" + r.newCode()
	tab.Go(link)
	tab.Until("the page of the team", `location.pathname === '/t/demo/needs' && document.readyState === 'complete'`)
	return link
}

// change changes the request of ann.
func (f *fake) change(change func(*view.Request)) {
	f.mu.Lock()
	change(&f.request)
	f.mu.Unlock()
	f.changed <- struct{}{}
}

func (f *fake) done() []view.Deed {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]view.Deed{}, f.deeds...)
}

// TestBrowser: the page in Chromium, at the sizes of a desk and of a phone. Documents spend most of their time
// waiting, so that several are open at once.
func TestBrowser(t *testing.T) {
	t.Parallel()
	b := webtest.Start(t)
	one := func(name string, check func(*testing.T, *webtest.Browser)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, b)
		})
	}
	kinds := map[string]webtest.Kind{"phone": webtest.Phone}
	if !testing.Short() {
		kinds["desktop"] = webtest.Desktop
	}
	one("sizes", seeEverything)
	for name, k := range kinds {
		one("approve "+name, func(t *testing.T, b *webtest.Browser) { approveInBrowser(t, b, k) })
		one("reject "+name, func(t *testing.T, b *webtest.Browser) { rejectInBrowser(t, b, k) })
		one("comment "+name, func(t *testing.T, b *webtest.Browser) { commentInBrowser(t, b, k) })
		one("plan "+name, func(t *testing.T, b *webtest.Browser) { planInBrowser(t, b, k) })
		one("merge "+name, func(t *testing.T, b *webtest.Browser) { mergeInBrowser(t, b, k) })
	}
	one("held", heldInBrowser)
	one("late", lateInBrowser)
	one("removed", removedInBrowser)
	one("closed", otherSitesInBrowser)
	one("streams", streamsInBrowser)
	one("deleted", deletedInBrowser)
	one("teams", teamsInBrowser)
	one("no script", withoutScript)
}

// seeEverything: every view fits, shows a script as text, and wants nothing that its policy
// forbids.
func seeEverything(t *testing.T, b *webtest.Browser) {
	r, tab := browse(t, b, webtest.Desktop)
	r.f.change(func(q *view.Request) {
		q.Command = strings.Repeat("make ", 100) + strings.Repeat("x", 500) + evil
		q.Plan = evil + "\n" + strings.Repeat("y", 500)
	})
	for _, path := range pages {
		tab.Go(r.srv.URL + path)
		for _, k := range []webtest.Kind{webtest.Desktop, webtest.Phone, webtest.Narrow} {
			tab.Size(k)
			tab.Fits()
		}
		if n := webtest.Eval[int](tab, `document.querySelectorAll('main script, main [onclick], main img, main iframe').length`); n > 0 {
			t.Errorf("%s has %d elements of an agent's", path, n)
		}
	}
	tab.Go(r.srv.URL + "/t/demo/task/5")
	tab.Shows(evil)
	tab.Fine(r.srv.URL)

	// What the policy is for: a script that gets into the document all the same does not run.
	webtest.Eval[any](tab, `(() => {
		const s = document.createElement('script'); s.textContent = 'window.ran = true'; document.body.append(s);
		const i = document.createElement('img'); i.src = 'http://127.0.0.1:1/x.png'; document.body.append(i);
		document.body.insertAdjacentHTML('beforeend', '<p id="styled" style="color: red" onclick="window.ran = true">x</p>');
		document.getElementById('styled').click();
		return null })()`)
	if webtest.Eval[bool](tab, `window.ran === true || document.getElementById('styled').style.color !== ''`) {
		t.Error("what an agent has written runs")
	}
	if got := strings.Join(tab.Wrong(), "\n"); strings.Count(got, "Content Security Policy") < 3 {
		t.Errorf("the policy refuses: %s", got)
	}
}

// approveInBrowser: a command takes two taps, and what has changed meanwhile is not approved.
func approveInBrowser(t *testing.T, b *webtest.Browser, k webtest.Kind) {
	r, tab := browse(t, b, k)
	tab.Go(r.srv.URL + "/t/demo/approval/1")
	// The second tap is waited for while this machine is slower than a person.
	webtest.Eval[bool](tab, `(real => { window.setTimeout = (f, ms, ...args) => real(f, ms === 8000 ? 600000 : ms, ...args); return true })(window.setTimeout)`)
	tab.Press("approve")
	tab.Shows("Tap again to approve")
	if d := r.f.done(); len(d) > 0 {
		t.Fatalf("one tap does %+v", d)
	}
	r.f.change(func(q *view.Request) { q.Command = "rm -r build" }) // the document waits for the second tap
	pause := time.NewTimer(500 * time.Millisecond)
	<-pause.C
	tab.Press("Tap again to approve")
	tab.Shows("no longer what you saw")
	tab.Shows("rm -r build")
	if d := r.f.done(); len(d) > 0 {
		t.Fatalf("what was not seen is answered: %+v", d)
	}
	tab.Press("approve")
	tab.Press("Tap again to approve")
	quick := webtest.Eval[bool](tab, `document.body.innerText.includes('Tap again')`)
	if d := r.f.done(); quick && len(d) > 0 {
		t.Errorf("two taps at once do %+v", d)
	}
	pause.Reset(500 * time.Millisecond)
	<-pause.C
	if quick {
		tab.Press("Tap again to approve")
	}
	tab.Shows("approved")
	tab.Until("no button", `!document.querySelector('button[data-action=approve]')`)
	if d := r.f.done(); len(d) != 1 || d[0].Action != "approve" || d[0].Approval != 1 || d[0].Seen == "" {
		t.Errorf("%+v", d)
	}
	tab.Fits()
	tab.Fine(r.srv.URL)
}

// heldInBrowser: a button that is pressed while the team changes is the one that is released.
func heldInBrowser(t *testing.T, b *webtest.Browser) {
	r, tab := browse(t, b, webtest.Desktop)
	tab.Go(r.srv.URL + "/t/demo/approval/1")
	release := tab.Hold("reject")
	r.f.change(func(q *view.Request) { q.Command = "rm -r build" })
	pause := time.NewTimer(time.Second) // the change is heard
	<-pause.C
	release()
	asks(tab)
	tab.Press("Cancel")
	tab.Shows("rm -r build")
	tab.Fine(r.srv.URL)
}

// lateInBrowser: a change while an answer of before it is on its way is shown, too.
func lateInBrowser(t *testing.T, b *webtest.Browser) {
	r, tab := browse(t, b, webtest.Phone)
	tab.Until("a page of now", `document.title === 'teamctl demo !1 ✗1 0/1'`)
	webtest.Eval[any](tab, `(real => { window.late = new Promise(go => { window.go = go }); window.fetch = async (...args) => {
		const res = await real(...args); window.answered = true; await window.late; return res } })(window.fetch)`)
	r.f.change(func(q *view.Request) { q.Command = "rm -r build" })
	tab.Until("an answer", `window.answered`)
	r.f.change(func(q *view.Request) { q.State = "approved" })
	tab.Until("the next change", `document.title === 'teamctl demo ✗1 0/1'`)
	if !webtest.Eval[bool](tab, `!!document.querySelector('main a[href="/t/demo/approval/1"]')`) {
		t.Error("an answer that is on its way is shown")
	}
	webtest.Eval[any](tab, `window.go(null)`)
	tab.Until("no request", `!document.querySelector('main a[href="/t/demo/approval/1"]')`)
	tab.Fine(r.srv.URL)
}

// removedInBrowser: a member that is removed is marked, and its page follows it when it is there again.
func removedInBrowser(t *testing.T, b *webtest.Browser) {
	r, tab := browse(t, b, webtest.Phone)
	removed := func(is bool) {
		r.f.mu.Lock()
		r.f.removed = is
		r.f.mu.Unlock()
		r.f.changed <- struct{}{}
	}
	tab.Go(r.srv.URL + "/t/demo/member/ann")
	tab.Shows("message")
	removed(true)
	tab.Shows("it does not exist any more")
	tab.Until("a mark", `document.getElementById('main').classList.contains('lost')`)
	removed(false)
	tab.Until("a page of now", `!document.getElementById('main').classList.contains('lost') && !document.getElementById('said').textContent`)
	_ = tab.Wrong() // the browser says that there was no such page
}

// asks waits for a dialog that takes keys.
func asks(tab *webtest.Tab) {
	tab.Helper()
	tab.Until("a dialog", `document.getElementById('ask').open && document.activeElement.id === 'text'`)
}

// rejectInBrowser: a reason is asked for; what was begun is there again after Cancel.
func rejectInBrowser(t *testing.T, b *webtest.Browser, k webtest.Kind) {
	r, tab := browse(t, b, k)
	tab.Go(r.srv.URL + "/t/demo/approval/1")
	tab.Press("reject")
	asks(tab)
	tab.Shows("reason, or what to change")
	tab.Types("not on ")
	tab.Press("Cancel")
	tab.Until("a closed dialog", `!document.getElementById('ask').open`)
	tab.Press("reject")
	asks(tab)
	tab.Until("what was typed", `document.getElementById('text').value === 'not on '`)
	tab.Types("a Friday")
	tab.Fits()
	tab.Press("Send")
	tab.Shows("done")
	tab.Go(r.srv.URL + "/t/demo/task/5")
	tab.Press("retry")
	tab.Shows("done")
	tab.Go(r.srv.URL + "/t/demo/member/ann")
	tab.Press("message")
	asks(tab)
	tab.Types("well done")
	tab.Press("Send")
	tab.Shows("done")
	d := r.f.done()
	if len(d) != 3 || d[0].Text != "not on a Friday" || d[0].Action != "reject" || d[1].Action != "retry" || d[1].Task != "5" || d[2].Text != "well done" || d[2].Member != "ann" {
		t.Errorf("%+v", d)
	}
	tab.Fine(r.srv.URL)
}

// commentInBrowser: the number of a line takes a comment, which is a draft from the first pause in
// typing on; it is changed, sent, and its answer stands below the line.
func commentInBrowser(t *testing.T, b *webtest.Browser, k webtest.Kind) {
	r, tab := browse(t, b, k)
	tab.Go(r.srv.URL + "/t/demo/changes/ann")
	tab.Press("1") // the removed line has the same number and is the first
	asks(tab)
	tab.Shows("comment on removed line x:1 of ann")
	tab.Press("Cancel")
	tab.Press("2")
	asks(tab)
	tab.Shows("comment on x:2 of ann")
	tab.Types("why tw")
	tab.Shows("done")
	tab.Types("o?")
	tab.Until("the whole draft", `!sessionStorage.length`)
	tab.Fits()
	tab.Press("Cancel") // nothing is lost
	tab.Shows("draft 1.1 line 2")
	tab.Press("edit the comment")
	asks(tab)
	tab.Until("the draft", `document.getElementById('text').value === 'why two?'`)
	tab.Types(evil)
	tab.Press("Keep the draft")
	tab.Shows(evil)
	tab.Press("comment on the file")
	asks(tab)
	tab.Types("and a test")
	tab.Press("Keep the draft")
	tab.Shows("draft 1.2 the file")
	tab.Fits()
	tab.Press("send the comments")
	tab.Shows("open 1.1 line 2")
	r.f.mu.Lock()
	r.f.said[0].State, r.f.said[0].Answer = "handled", "one will do"
	r.f.mu.Unlock()
	r.f.changed <- struct{}{}
	tab.Shows("answer: one will do")
	tab.Shows("round 1: 1 open, 1 handled")
	tab.Fits()
	d := r.f.done()
	last := d[len(d)-1]
	if d[0].Action != "comment" || d[0].Lines != "2" || d[0].Old || d[0].Path != "x" || last.Action != "send-review" || r.f.said[0].Text != "why two?"+evil {
		t.Errorf("%+v, %+v", d, r.f.said)
	}
	tab.Fine(r.srv.URL)
}

// planInBrowser: the number of a line of a plan takes a comment, which is a draft from the first
// pause in typing on, is changed, and goes with the rejection.
func planInBrowser(t *testing.T, b *webtest.Browser, k webtest.Kind) {
	r, tab := browse(t, b, k)
	r.f.change(func(q *view.Request) {
		*q = view.Request{ID: 1, Kind: view.NeedPlan, State: "pending", Member: "ann", Subject: "a plan", Asked: q.Asked, Plan: "# Plan\n1. rename " + strings.Repeat("words ", 60) + "\n2. delete"}
	})
	tab.Go(r.srv.URL + "/t/demo/approval/1")
	tab.Press("2")
	asks(tab)
	tab.Shows("comment on line 2 of plan 1 of ann")
	tab.Types("whi")
	tab.Shows("done")
	tab.Types("ch?")
	tab.Until("the whole draft", `!sessionStorage.length`)
	tab.Press("Cancel") // nothing is lost
	tab.Shows("draft 1 line 2")
	tab.Fits()
	tab.Press("edit the comment")
	asks(tab)
	tab.Until("the draft", `document.getElementById('text').value === 'which?'`)
	tab.Types(evil)
	tab.Press("Keep the draft")
	tab.Shows(evil)
	tab.Press("reject with 1 comment")
	asks(tab)
	tab.Types("not yet")
	tab.Press("Send")
	tab.Shows("rejected")
	tab.Fits()
	d := r.f.done()
	last := d[len(d)-1]
	if d[0].Action != "comment-plan" || d[0].Lines != "2" || d[1].Action != "edit-plan-comment" || last.Action != "reject" || last.Comments != 1 || last.Text != "not yet" {
		t.Errorf("%+v", d)
	}
	tab.Fine(r.srv.URL)
}

// mergeInBrowser: what would be merged is shown first, Cancel merges nothing, and nothing else than what was
// shown is merged.
func mergeInBrowser(t *testing.T, b *webtest.Browser, k webtest.Kind) {
	r, tab := browse(t, b, k)
	ready := func(text string) {
		r.f.mu.Lock()
		defer r.f.mu.Unlock()
		r.f.ready = text
	}
	opens := func(text string) {
		tab.Until("what would be merged", `document.getElementById('would').open && document.activeElement.id === 'what-it-does'`)
		tab.Shows(text)
		tab.Fits()
		pause := time.NewTimer(500 * time.Millisecond)
		<-pause.C
	}
	const merge = "merge the ready branches"
	inDialog := func() { webtest.Eval[any](tab, `document.getElementById('do-it').click()`) }
	tab.Go(r.srv.URL + "/t/demo/changes")
	tab.Press(merge)
	tab.Shows("nothing is ready to be merged")
	ready("ann would be merged into main\n" + evil + strings.Repeat("x", 300))
	tab.Press(merge)
	opens("ann would be merged into main")
	tab.Press("Cancel")
	tab.Shows("Nothing was done")
	if d := r.f.done(); len(d) > 0 {
		t.Fatalf("done: %+v", d)
	}
	tab.Press(merge)
	opens("ann would be merged into main")
	ready("bob would be merged into main")
	inDialog()
	tab.Shows("what is ready has changed")
	webtest.Eval[any](tab, `(() => { const box = document.getElementById('would'); window.early = 0;
		new MutationObserver((_, o) => { if (box.open) { o.disconnect(); document.getElementById('do-it').click(); window.early++; } }).observe(box, {attributes: true}); return null; })()`)
	tab.Press(merge)
	tab.Until("a tap as soon as the dialog is there", `window.early === 1`)
	tab.Shows("bob would be merged into main")
	if d := r.f.done(); len(d) > 0 {
		t.Fatalf("done: %+v", d)
	}
	opens("bob would be merged into main")
	inDialog()
	tab.Shows("ann merged into main")
	if d := r.f.done(); len(d) != 1 || d[0].Action != "merge-ready" || d[0].Seen != "seen bob would be merged into main" {
		t.Errorf("%+v", d)
	}
	tab.Fine(r.srv.URL)
}

// otherSitesInBrowser: another site can neither read the page nor change anything by it, not even
// under a name that leads to it, and a request of the page's own needs its token.
func otherSitesInBrowser(t *testing.T, b *webtest.Browser) {
	r, tab := browse(t, b, webtest.Desktop)
	if got := webtest.Eval[int](tab, `fetch('/t/demo/do', {method: 'POST', body: '{"action":"retry","task":"5"}'}).then((r) => r.status)`); got != http.StatusForbidden {
		t.Errorf("a change without the token: %d", got)
	}
	evilSite := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("<!doctype html><title>evil</title>"))
	}))
	t.Cleanup(evilSite.Close)
	in, err := json.Marshal(r.approval())
	if err != nil {
		t.Fatal(err)
	}
	tab.Go(strings.Replace(evilSite.URL, "127.0.0.1", "localhost", 1))
	for _, script := range []string{
		`fetch('` + r.srv.URL + `/t/demo/needs', {credentials: 'include'}).then((r) => r.text(), () => '')`,
		`fetch('` + r.srv.URL + `/t/demo/needs', {credentials: 'include', mode: 'no-cors'}).then((r) => r.text(), () => '')`,
		`fetch('` + r.srv.URL + `/t/demo/do', {method: 'POST', mode: 'no-cors', credentials: 'include', body: ` + "`" + strings.ReplaceAll(string(in), "`", "") + "`" + `}).then((r) => r.text(), () => '')`,
		`new Promise((done) => { const f = document.createElement('iframe'); f.src = '` + r.srv.URL + `/t/demo/needs'; f.onload = f.onerror = () => { let t = ''; try { t = f.contentDocument ? f.contentDocument.body.innerText : '' } catch {} done(t) }; document.body.append(f) })`,
	} {
		if got := webtest.Eval[string](tab, script); strings.Contains(got, "ann") {
			t.Errorf("%s: %s", script, got)
		}
	}
	if d := r.f.done(); len(d) > 0 {
		t.Errorf("done: %+v", d)
	}
	_ = tab.Wrong() // what the browser says of it
	if got := tab.Status(strings.Replace(r.srv.URL, "127.0.0.1", "page.localhost", 1) + "/t/demo/needs"); got != http.StatusForbidden {
		t.Errorf("under a name that leads here: %d", got)
	}
}

// streamsInBrowser: an open page follows the team and a member's screen, says when it is cut off,
// and goes on by itself with the next server on its port.
func streamsInBrowser(t *testing.T, b *webtest.Browser) {
	r, tab := browse(t, b, webtest.Phone)
	tab.Shows("1 need you")
	screen := b.Tab(t, webtest.Phone, webtest.Private())
	enter(r, screen)
	screen.Go(r.srv.URL + "/t/demo/screen/ann")
	screen.Shows(evil)
	if got := webtest.Eval[string](screen, `document.title + document.getElementById('screen').innerHTML`); strings.Contains(got, "\x1b") || strings.Contains(got, "<script") || strings.Contains(got, "style=") {
		t.Errorf("%q", got)
	}
	if got := webtest.Eval[string](screen, `(e => e.textContent + getComputedStyle(e).color)(document.querySelector('#screen .f1'))`); got != evil+"rgb(224, 85, 97)" {
		t.Errorf("what is red: %q", got)
	}
	screen.Fits()
	screen.Fine(r.srv.URL)

	tab.Fine(r.srv.URL)
	addr := r.srv.Listener.Addr().String()
	r.srv.CloseClientConnections()
	r.srv.Close()
	tab.Shows("The connection is lost since")
	screen.Shows("The connection is lost since")
	r.f.mu.Lock()
	r.f.request.State = "approved"
	r.f.screen = "three"
	r.f.mu.Unlock()
	r.s = &Server{Home: r.f, Sessions: r.store}
	r.serveAt(addr)
	tab.Shows("Nothing needs you")
	tab.Until("nothing said of the connection", `!document.getElementById('said').textContent.includes('lost')`)
	screen.Shows("three")
	_ = tab.Wrong()
	if _, err := r.store.Revoke(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.f.change(func(q *view.Request) { q.State = "pending" })
	tab.Shows("you are not logged in")
}

// deletedInBrowser: when its team is deleted an open page says so and keeps what it shows, and a text that
// was not sent stays in its field until it is.
func deletedInBrowser(t *testing.T, b *webtest.Browser) {
	r, tab := browse(t, b, webtest.Phone)
	exists := func(gone error, teams ...view.Glance) {
		r.f.list(teams...)
		r.f.mu.Lock()
		r.f.gone = gone
		r.f.mu.Unlock()
		r.f.changed <- struct{}{}
	}
	const inField = `document.getElementById('ask').open && document.getElementById('text').value === 'look at task 5'`
	tab.Go(r.srv.URL + "/t/demo/member/ann")
	tab.Press("message")
	asks(tab)
	const asksFirst = `!dispatchEvent(new Event('beforeunload', {cancelable: true}))`
	if webtest.Eval[bool](tab, asksFirst) {
		t.Error("the browser asks before an empty text is left")
	}
	tab.Types("look at task 5")
	if !webtest.Eval[bool](tab, asksFirst) {
		t.Error("the browser does not ask before a text is left")
	}
	const place = `JSON.stringify(document.querySelector('button[data-action=message]').getBoundingClientRect())`
	at := webtest.Eval[string](tab, place)
	exists(team.Errorf(team.CodeNotFound, "the ledger was removed"))
	tab.Shows("the team was not found")
	if now := webtest.Eval[string](tab, place); now != at {
		t.Errorf("a button has moved from %s to %s", at, now)
	}
	tab.Until("the text", inField)
	tab.Press("Send")
	tab.Shows("there is no such team")
	if !webtest.Eval[bool](tab, `!!document.querySelector('main.lost button[data-action=message]')`) {
		t.Error("what was known of the member is gone, or is not marked")
	}
	tab.Press("message")
	tab.Until("the text again", inField)
	tab.Press("Cancel")
	tab.Until("no question before leaving", `!(`+asksFirst+`)`)
	exists(nil, view.Glance{Team: "demo"})
	tab.Until("a page of now", `!document.getElementById('main').classList.contains('lost')`)
	tab.Press("message")
	tab.Until("the text once more", inField)
	tab.Press("Send")
	tab.Shows("done")
	tab.Until("no text", `!sessionStorage.length`)
	if d := r.f.done(); len(d) != 1 || d[0].Text != "look at task 5" {
		t.Errorf("%+v", d)
	}
	_ = tab.Wrong()
}

// teamsInBrowser: an open list of teams follows them, stays a list when one team is left, keeps the focus,
// and says when it is cut off.
func teamsInBrowser(t *testing.T, b *webtest.Browser) {
	r, tab := browse(t, b, webtest.Phone)
	demo := view.Glance{Team: "demo", Total: 3}
	r.f.list(demo, view.Glance{Team: "other"})
	tab.Go(r.srv.URL + "/")
	tab.Shows("other")
	webtest.Eval[any](tab, `(document.querySelector('main a').focus(), null)`)
	demo.Needs = 2
	r.f.list(demo, view.Glance{Team: "other"}, view.Glance{Team: evil})
	tab.Shows("demo !2 0/3")
	tab.Shows(evil)
	tab.Until("the focus", `document.activeElement.getAttribute('href') === '/t/demo'`)
	tab.Fits()
	r.f.list(demo)
	tab.Until("a list of one", `!document.body.innerText.includes('other') && location.pathname === '/'`)
	tab.Shows("demo !2 0/3")
	tab.Fine(r.srv.URL)
	addr := r.srv.Listener.Addr().String()
	r.srv.CloseClientConnections()
	r.srv.Close()
	tab.Shows("The connection is lost since")
	r.f.list()
	r.s = &Server{Home: r.f, Sessions: r.store}
	r.serveAt(addr)
	tab.Shows("There is no team yet.")
	tab.Until("nothing said of the connection", `!document.getElementById('said').textContent.includes('lost')`)
	_ = tab.Wrong()
}

// withoutScript: without JavaScript the page can be read.
func withoutScript(t *testing.T, b *webtest.Browser) {
	r := newRig(t)
	k := webtest.Phone
	k.NoScript = true
	tab := b.Tab(t, k, webtest.Private())
	enter(r, tab)
	for _, path := range pages {
		tab.Go(r.srv.URL + path)
		tab.Fits()
	}
	tab.Go(r.srv.URL + "/t/demo/needs")
	tab.Shows("1 need you")
	tab.Shows("Without JavaScript")
	tab.Fine(r.srv.URL)
}
