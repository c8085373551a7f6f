package script

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/agent/model/wire"
	"github.com/teamctl/teamctl/internal/script"
	"github.com/teamctl/teamctl/team"
)

// Name is the provider's name, Demo its model that follows only the conversation.
const (
	Name = "script"
	Demo = "demo"
)

const (
	maxScript     = 1 << 20 // bytes of a file
	piece         = 24      // bytes of a delta
	bytesPerToken = 4
)

// Provider is the script model's provider.
type Provider struct{}

// Models implements model.Provider.
func (Provider) Models(context.Context) ([]model.Info, error) {
	return []model.Info{{ID: Demo, Price: &model.Price{}}}, nil
}

// Stream implements model.Provider.
func (Provider) Stream(ctx context.Context, r model.Request, on func(model.Delta)) (model.Answer, error) {
	self := model.Ref{Provider: Name, Model: r.Model}
	lines, err := read(r.Model)
	if err != nil {
		return model.Answer{}, &model.Error{Kind: model.Refused, Provider: Name, Err: err}
	}
	msgs := wire.Conversation(r.Messages, self, func([]byte) ([]string, bool) { return nil, false })
	st, ok := script.Next(parts(lines, msgs))
	if !ok {
		st = follow(msgs, r.Tools)
	}
	if st.Wait > 0 {
		t := time.NewTimer(st.Wait)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		return model.Answer{}, ctx.Err()
	}
	if st.Status != 0 {
		return model.Answer{}, wire.Endpoint{Name: Name}.Error(wire.Refusal{Status: st.Status, Text: cmp.Or(st.Say, http.StatusText(st.Status))})
	}
	a := model.Answer{Message: model.Message{Role: model.RoleAssistant, From: self}, Stop: model.StopEnd}
	if st.Tool != "" || st.Shell != "" {
		offered := make([]script.Tool, len(r.Tools))
		for i, t := range r.Tools {
			offered[i].Name = t.Name
		}
		if t, input, ok := script.Resolve(st, offered); ok {
			c := &model.Call{ID: wire.NewIDs(r.Messages).Take(""), Name: t.Name, Input: input}
			on(model.Delta{Call: &model.Call{ID: c.ID, Name: c.Name}})
			a.Message.Parts, a.Stop = []model.Part{{Call: c}}, model.StopCalls
		} else {
			st.Say = "no tool here runs a shell"
		}
	}
	if a.Stop == model.StopEnd {
		text := cmp.Or(st.Say, "ok")
		a.Message.Parts = []model.Part{{Text: text}}
		for len(text) > 0 {
			n := min(piece, len(text))
			for n < len(text) && !utf8.RuneStart(text[n]) {
				n++
			}
			on(model.Delta{Text: text[:n]})
			text = text[n:]
		}
	}
	a.Usage = team.Usage{InputTokens: tokens(r.System, r.Tools, r.Messages, r.Ephemeral), OutputTokens: tokens(a.Message.Parts), CostKnown: true}
	return a, nil
}

// Check reports why a model of the provider cannot be used. Errors are CodeNotFound.
func Check(name string) error {
	if _, err := read(name); err != nil {
		return team.Errorf(team.CodeNotFound, "%w", err).WithReason(team.ReasonNoScript)
	}
	return nil
}

// read returns the lines of script/FILE.
func read(name string) (string, error) {
	if name == Demo {
		return "", nil
	}
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("no script %s: use script/%s, or script/FILE with the path of a file", name, Demo)
	case err != nil:
		return "", err
	case !info.Mode().IsRegular() || info.Size() > maxScript:
		return "", fmt.Errorf("script %s is not a file of at most %d bytes", name, maxScript)
	}
	b, err := os.ReadFile(name)
	return string(b), err
}

// parts converts the conversation for the script interpreter.
func parts(lines string, msgs []model.Message) []script.Part {
	out := []script.Part{{Text: lines}}
	for _, m := range msgs {
		p := script.Part{Model: m.Role == model.RoleAssistant}
		var texts []string
		for _, one := range m.Parts {
			switch {
			case one.Result != nil:
				p.Tool = true
				texts = append(texts, one.Result.Text)
			case one.Text != "":
				texts = append(texts, one.Text)
			}
		}
		p.Text = strings.Join(texts, "\n")
		out = append(out, p)
	}
	return script.Merge(out)
}

// tokens estimates the token count of its arguments.
func tokens(all ...any) int64 {
	n := 0
	for _, v := range all {
		if s, ok := v.(string); ok {
			n += len(s)
		} else if b, err := json.Marshal(v); err == nil {
			n += len(b)
		}
	}
	return int64((n + bytesPerToken - 1) / bytesPerToken)
}
