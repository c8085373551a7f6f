package fakecli

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/teamctl/teamctl/internal/fakemodel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A turn that is broken off while the model answers has nothing of that answer in its
// conversation. What comes afterwards is done at once, and not what was broken off.
func TestInterruptedWhileTheModelAnswers(t *testing.T) {
	t.Parallel()
	model, err := fakemodel.Start("", nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	e := NewEngine(model.URL, t.TempDir())
	over := make(chan struct{}, 2)
	e.Active = func(turn string) {
		if turn == "" {
			over <- struct{}{}
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.Run(ctx)
	}()
	defer func() {
		cancel()
		<-done
		http.DefaultClient.CloseIdleConnections()
		if err := model.Close(); err != nil {
			t.Error(err)
		}
	}()
	answered := func(how string) {
		t.Helper()
		if _, err := model.Wait(ctx, func(r fakemodel.Request) bool { return strings.HasPrefix(r.Answer, how) }); err != nil {
			t.Fatalf("not answered with %q: %v", how, err)
		}
	}

	e.Send(Text{Text: "@@sleep 1h\n@@shell sleep 3600\n@@say never"}, true)
	answered("call Bash") // on its way for an hour
	if !e.Interrupt() {
		t.Fatal("there was no turn to interrupt")
	}
	select {
	case <-over:
	case <-ctx.Done():
		t.Fatal("the turn goes on after its interrupt")
	}
	e.Send(Text{Text: "There is mail.\n@@say after"}, true)
	answered("say after")
	for _, r := range model.Requests() {
		if strings.Contains(r.Answer, "never") {
			t.Errorf("what was broken off was done: %s", r.Answer)
		}
	}
}
