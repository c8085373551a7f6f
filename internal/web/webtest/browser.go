// Package webtest shows documents in a real browser, for tests. No program links it.
//
// Where no Chromium is installed the tests that need one are skipped.
package webtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience bounds everything that a browser is waited for.
const patience = 10 * time.Minute

// programs are the names of Chromium, the one without a screen first.
func programs() []string {
	return []string{"chromium-headless-shell", "chrome-headless-shell", "headless_shell", "chromium", "chromium-browser", "google-chrome"}
}

// Browser is a process of Chromium with a profile of its own.
type Browser struct{ ctx context.Context }

// Start starts a browser that ends with the test, or skips the test.
func Start(t testing.TB) *Browser {
	t.Helper()
	exe := ""
	for _, name := range programs() {
		if path, err := exec.LookPath(name); err == nil {
			exe = path
			break
		}
	}
	if exe == "" {
		t.Skip("no Chromium: the page is not tried in a browser")
	}
	dir, err := os.MkdirTemp("", "web")
	if err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(exe), chromedp.UserDataDir(dir), chromedp.DisableGPU,
		chromedp.IgnoreCertErrors, chromedp.WSURLReadTimeout(patience), chromedp.Env("HOME="+dir, "TMPDIR="+dir, "XDG_RUNTIME_DIR="+dir, "DBUS_SESSION_BUS_ADDRESS=/dev/null"))
	if os.Getuid() == 0 { // its sandbox refuses to start for root
		options = append(options, chromedp.NoSandbox)
	}
	alloc, free := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, stop := chromedp.NewContext(alloc)
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // it ends either way
		stop()
		free()
		for began := time.Now(); ; { // its children write a moment longer
			if err := os.RemoveAll(dir); err == nil {
				return
			} else if time.Since(began) > patience {
				t.Errorf("remove the profile of the browser: %v", err)
				return
			}
			pause := time.NewTimer(50 * time.Millisecond)
			<-pause.C
		}
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start %s: %v", exe, err)
	}
	return &Browser{ctx}
}

// Tab is one document of a browser, with a size.
type Tab struct {
	testing.TB
	ctx   context.Context
	width int

	mu       sync.Mutex
	wrong    []string
	requests []string
}

// Kind says how a tab is used.
type Kind struct {
	Width, Height int
	Phone         bool // touched, with a phone's idea of the width of a document
	NoScript      bool
}

// Desktop and Phone are the sizes that the page is made for.
var (
	Desktop = Kind{Width: 1280, Height: 800}
	Phone   = Kind{Width: 390, Height: 844, Phone: true}
	Narrow  = Kind{Width: 360, Height: 740, Phone: true}
)

// Tab opens an empty document that is closed with the test. Tabs of a browser share cookies,
// those of another profile do not.
func (b *Browser) Tab(t testing.TB, k Kind, o ...chromedp.ContextOption) *Tab {
	t.Helper()
	ctx, stop := chromedp.NewContext(b.ctx, o...)
	t.Cleanup(stop)
	tab := &Tab{TB: t, ctx: ctx}
	if err := chromedp.Listen(ctx, tab.hear); err != nil {
		t.Fatalf("open a tab: %v", err)
	}
	if k.NoScript {
		do(tab, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	}
	tab.Size(k)
	return tab
}

// Private is an option of a tab with a profile of its own.
func Private() chromedp.ContextOption { return chromedp.WithNewBrowserContext() }

// Size makes the tab another size.
func (t *Tab) Size(k Kind) {
	t.Helper()
	t.width = k.Width
	do(t, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: int64(k.Width), Height: int64(k.Height), DeviceScaleFactor: 1, Mobile: k.Phone})
	do(t, emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{Enabled: k.Phone})
}

// hear collects what goes wrong in a document, and what it asks for.
func (t *Tab) hear(event any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		t.wrong = append(t.wrong, fmt.Sprintf("exception: %+v", e.ExceptionDetails))
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeAssert || e.Type == runtime.ConsoleAPICalledTypeWarning {
			var words []string
			for _, a := range e.Args {
				words = append(words, string(a.Value)+a.Description)
			}
			t.wrong = append(t.wrong, "console: "+strings.Join(words, " "))
		}
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == cdplog.EntryLevelError && e.Entry.Source != cdplog.EntrySourceNetwork || e.Entry.Source == cdplog.EntrySourceSecurity {
			t.wrong = append(t.wrong, fmt.Sprintf("%s: %s", e.Entry.Source, e.Entry.Text))
		}
	case *page.EventJavascriptDialogOpening:
		t.wrong = append(t.wrong, "dialog: "+e.Message)
		go func() { // what is heard may not wait for an answer
			_, _ = chromedp.Call(t.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{})
		}()
	case *network.EventRequestWillBeSent:
		t.requests = append(t.requests, e.Request.URL)
	}
}

// Wrong returns what has gone wrong since it was called last: errors in the console, exceptions,
// dialogs, and what the document's policy has refused.
func (t *Tab) Wrong() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := t.wrong
	t.wrong = nil
	return out
}

// Fine checks that nothing has gone wrong, and that nothing was asked for but from origin.
func (t *Tab) Fine(origin string) {
	t.Helper()
	for _, w := range t.Wrong() {
		t.Error(w)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.requests {
		if !strings.HasPrefix(r, origin+"/") && !strings.HasPrefix(r, "data:") && r != "about:blank" {
			t.Errorf("a request to %s", r)
		}
	}
}

// run runs an action; one that fails ends the test.
func run[T any](t *Tab, what string, action chromedp.Action[T]) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	out, err := chromedp.Run(ctx, action)
	if err != nil {
		t.Fatalf("%s: %v\n%s", what, err, t.look())
	}
	return out
}

// do runs a command of the protocol.
func do[P, R any](t *Tab, cmd cdp.Command[P, R], params P) R {
	t.Helper()
	out, err := chromedp.Call(t.ctx, cmd, params)
	if err != nil {
		t.Fatalf("%s: %v", cmd.Method, err)
	}
	return out
}

// look is what the document shows, for a test that has failed.
func (t *Tab) look() string {
	ctx, cancel := context.WithTimeout(t.ctx, patience/6)
	defer cancel()
	text, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + (document.body ? document.body.innerText : "")`))
	return text
}

// Go opens an address and waits until it is loaded.
func (t *Tab) Go(url string) {
	t.Helper()
	run(t, "open "+url, chromedp.Navigate(url))
}

// Status is what a server answers to an address with.
func (t *Tab) Status(url string) int64 {
	t.Helper()
	return run(t, "open "+url, chromedp.NavigateResponse(url)).Status
}

// Eval evaluates a script's expression, and waits for its promise.
func Eval[T any](t *Tab, script string) T {
	t.Helper()
	return run(t, "evaluate "+script, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
}

// Until waits for a script's expression to be true.
func (t *Tab) Until(what, script string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	for {
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+script+")"))
		if ok {
			return
		}
		pause := time.NewTimer(50 * time.Millisecond)
		select {
		case <-pause.C:
		case <-ctx.Done():
			t.Fatalf("waited for %s: %v\n%s", what, err, t.look())
		}
	}
}

// Shows waits for a text in the document.
func (t *Tab) Shows(text string) {
	t.Helper()
	t.Until(fmt.Sprintf("a document with %q", text), fmt.Sprintf("document.body.innerText.includes(%q)", text))
}

// button is the visible button with this name.
func button(name string) string {
	return fmt.Sprintf(`[...document.querySelectorAll('button')].find((b) => b.offsetParent && !b.disabled && b.textContent.trim() === %q)`, name)
}

// Press presses the button with this name, as a hand does: once it has come to rest, and nothing
// lies over it.
func (t *Tab) Press(name string) {
	t.Helper()
	x, y := t.place(name)
	run(t, "press "+name, chromedp.MouseClickXY(x, y))
}

// Hold presses the button with this name, and releases it when release is called.
func (t *Tab) Hold(name string) (release func()) {
	t.Helper()
	x, y := t.place(name)
	run(t, "hold "+name, chromedp.MouseEvent(input.DispatchMouseEventTypeMousePressed, x, y, chromedp.ButtonLeft, chromedp.ClickCount(1)))
	return func() {
		t.Helper()
		run(t, "release "+name, chromedp.MouseEvent(input.DispatchMouseEventTypeMouseReleased, x, y, chromedp.ButtonLeft, chromedp.ClickCount(1)))
	}
}

// place waits until the button with this name has come to rest, and returns its middle.
func (t *Tab) place(name string) (x, y float64) {
	t.Helper()
	t.Until("the button "+name, `(() => {
		const b = `+button(name)+`; if (!b) return false;
		b.scrollIntoView({block: 'center', behavior: 'instant'});
		const r = b.getBoundingClientRect(), x = r.x + r.width / 2, y = r.y + r.height / 2, at = x + ' ' + y;
		const still = window.pressAt === at; window.pressAt = at;
		return still && b.contains(document.elementFromPoint(x, y)); })()`)
	at := Eval[[]float64](t, `window.pressAt.split(' ').map(Number)`)
	return at[0], at[1]
}

// Types types into what has the focus.
func (t *Tab) Types(text string) {
	t.Helper()
	run(t, "type", chromedp.KeyEvent(text))
}

// Fits checks that the document needs no scrolling sideways. A phone makes the place for a
// document wider instead of letting it scroll.
func (t *Tab) Fits() {
	t.Helper()
	if wide := Eval[string](t, fmt.Sprintf(`(() => { const d = document.documentElement, most = %d, is = Math.max(d.scrollWidth, d.clientWidth); return is <= most ? '' :
		location.pathname + ': ' + is + ' of ' + most + ' pixels: ' +
		[...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > most + 1).slice(0, 5).map((e) => e.outerHTML.slice(0, 80)).join(' | ') })()`, t.width)); wide != "" {
		t.Error(wide)
	}
}

// Picture returns the tab as a PNG.
func (t *Tab) Picture() []byte {
	t.Helper()
	return run(t, "take a picture", chromedp.CaptureScreenshot())
}
