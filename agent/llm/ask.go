package llm

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/team"
)

const (
	maxTries  = 8               // of one request, before the job pauses
	jobPause  = 5 * time.Minute // duration of such a pause
	maxPauses = 3               // pauses before the job fails
	firstWait = time.Second
	leastWait = time.Millisecond
	lastWait  = time.Minute
	loginWait = time.Minute // between two checks for a login
)

// ask requests the next answer from the model, and compacts the conversation if it has become too
// long.
func (t *turn) ask(ctx context.Context) (model.Answer, error) {
	if t.full() {
		if err := t.compact(ctx, "", "the conversation fills its context"); err != nil {
			return model.Answer{}, err
		}
	}
	for {
		a, err := t.stream(ctx, t.request)
		if k, ok := model.KindOf(err); ok && k == model.TooLong {
			if err := t.compact(ctx, "", err.Error()); err != nil {
				return a, err
			}
			continue
		}
		return a, err
	}
}

// stream carries out a request until it is answered. Text of an answer that was cut is marked on
// the screen and not stored. An error of kind TooLong is left to the caller.
func (t *turn) stream(ctx context.Context, request func(context.Context) (model.Request, error)) (model.Answer, error) {
	if err := t.mayAsk(); err != nil {
		return model.Answer{}, err
	}
	pauses, tries, wait := 0, 0, firstWait
	for {
		if err := t.desk.Allowed(ctx); err != nil {
			return model.Answer{}, err
		}
		var req model.Request
		err := t.patiently(ctx, func() (err error) { // it has the state of the team
			req, err = request(ctx)
			return err
		})
		if err != nil {
			return model.Answer{}, err
		}
		if ctx.Err() != nil {
			return model.Answer{}, ctx.Err() // nothing was sent
		}
		said := ""
		a, err := t.setup.Provider.Stream(ctx, req, func(d model.Delta) {
			if d.Text != "" {
				said = d.Text
				t.desk.Say(d.Text)
			}
		})
		if said != "" && !strings.HasSuffix(said, "\n") {
			t.desk.Say("\n")
		}
		if err == nil {
			if a.Notice != "" {
				t.desk.Line("[%s]", a.Notice)
			}
			t.price(&a.Usage)
			return a, nil
		}
		if ctx.Err() != nil {
			t.stopped(a.Usage)
			return a, ctx.Err()
		}
		if said != "" {
			t.desk.Line("[cut]")
		}
		if said != "" || a.Usage != (team.Usage{}) { // it was at work when it was cut
			t.stopped(a.Usage)
		}
		var trouble *model.Error
		if !errors.As(err, &trouble) {
			return a, fail("ask %s: %v", t.setup.Model, err)
		}
		switch trouble.Kind {
		case model.TooLong:
			return a, err
		case model.Limited:
			t.desk.Line("%v", trouble)
			err = t.desk.Limited(ctx, &team.LimitReached{Until: trouble.Until, Words: trouble.Error(), Provider: t.setup.Model.Provider})
		case model.Login:
			t.desk.Line("%v: waiting for a login", trouble)
			if err = t.desk.Wait(ctx, loginWait, team.WaitLogin, trouble.Error()); err == nil {
				t.reopen(ctx)
			}
		case model.Refused:
			return a, failure{trouble.Error()}
		case model.Temporary, model.Cut:
			tries++
			pause := max(trouble.After, t.jittered(wait), leastWait) // without a pause it would retry for ever
			wait = min(2*wait, lastWait)
			if tries == maxTries {
				if pauses == maxPauses {
					return a, fail("%v, after %d tries", trouble, maxTries*(maxPauses+1))
				}
				pauses, tries, wait, pause = pauses+1, 0, firstWait, jobPause
			}
			t.desk.Line("%v: again in %s", trouble, roundTime(pause))
			err = t.desk.Wait(ctx, pause, "", trouble.Error())
		}
		if err != nil {
			return a, err
		}
	}
}

// reopen makes a change of the configuration effective for the rest of the turn. One that cannot be
// read is shown, and changes nothing.
func (t *turn) reopen(ctx context.Context) {
	if t.setup.Reopen == nil {
		return
	}
	p, err := t.setup.Reopen(ctx)
	if err != nil {
		t.desk.Line("[%v]", err)
		return
	}
	t.setup.Provider = p
}

func (t *turn) jittered(d time.Duration) time.Duration {
	if t.Jitter != nil {
		return time.Duration(t.Jitter() * float64(d))
	}
	return rand.N(d)
}

// request builds the model's request: a function of the entries and the setup, except for
// Ephemeral.
func (t *turn) request(ctx context.Context) (model.Request, error) {
	return t.requestOf(ctx, t.entries)
}

func (t *turn) requestOf(ctx context.Context, conversation *transcript) (model.Request, error) {
	msgs, err := conversation.messages()
	if err != nil {
		return model.Request{}, err
	}
	users := 0
	for i := len(msgs) - 1; i >= 0 && users < 2; i-- {
		if msgs[i].Role == model.RoleUser {
			msgs[i].Cache = true
			users++
		}
	}
	r := model.Request{
		Model: t.setup.Model.Model, System: t.setup.System, Messages: msgs, MaxOutput: t.setup.MaxOutput,
		Temperature: t.setup.Temperature, Effort: t.setup.Effort, CacheKey: t.Job.Session,
	}
	for _, tool := range t.setup.Tools {
		r.Tools = append(r.Tools, tool.Tool)
	}
	slices.SortFunc(r.Tools, func(a, b model.Tool) int { return strings.Compare(a.Name, b.Name) })
	if t.setup.Ephemeral != nil {
		if r.Ephemeral, err = t.setup.Ephemeral(ctx); err != nil {
			return r, err
		}
	}
	return r, nil
}
