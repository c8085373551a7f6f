package mcp

import (
	"context"
	"encoding/json"
	"errors"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/tool"
	"github.com/teamctl/teamctl/tool/op"
)

// resource is something that a client may read and subscribe to.
type resource struct {
	uri, name, title, text string
	read                   func(ctx context.Context, t *tool.Team, c tool.Caller) (any, error)
}

// URIs of the resources.
const (
	URIRoster = "teamctl://team/roster"
	URITasks  = "teamctl://team/tasks"
	URIInbox  = "teamctl://me/inbox"
	URIThread = "teamctl://me/thread"
)

var resources = []resource{
	{URIRoster, "roster", "Team roster", "Who is on the team, and what each member's process and agent do.",
		func(ctx context.Context, t *tool.Team, c tool.Caller) (any, error) { return op.Status(ctx, t, c) }},
	{URITasks, "tasks", "Task board", "Every task of the team, and the board in numbers.",
		func(ctx context.Context, t *tool.Team, _ tool.Caller) (any, error) {
			all, err := t.Ledger.Tasks(ctx, ledger.TaskFilter{})
			if err != nil {
				return nil, err
			}
			return op.Board(ctx, t, all)
		}},
	{URIInbox, "inbox", "Your mailbox", "All your mail, read and unread; reading this marks nothing.",
		func(ctx context.Context, t *tool.Team, c tool.Caller) (any, error) {
			return t.Inbox(ctx, c.Name, false)
		}},
	{URIThread, "thread", "Your conversations", "The messages of the current run from and to you, each below the one that it answers.",
		func(ctx context.Context, t *tool.Team, c tool.Caller) (any, error) {
			th, err := t.Ledger.Thread(ctx, "")
			if err == nil {
				th.Lines, err = op.MyLines(ctx, t, c, th.Lines)
			}
			return th, err
		}},
}

const mimeJSON = "application/json"

func findResource(uri string) (resource, bool) {
	for _, r := range resources {
		if r.uri == uri {
			return r, true
		}
	}
	return resource{}, false
}

func (s *Server) addResources() {
	for _, r := range resources {
		s.sdk.AddResource(&sdk.Resource{URI: r.uri, Name: r.name, Title: r.title, Description: r.text, MIMEType: mimeJSON},
			func(ctx context.Context, _ *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
				text, err := s.read(ctx, r)
				if err != nil {
					return nil, err
				}
				return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.uri, MIMEType: mimeJSON, Text: text}}}, nil
			})
	}
}

// read returns a resource as JSON.
func (s *Server) read(ctx context.Context, r resource) (string, error) {
	t, c, err := s.session.Open(ctx, "")
	if err != nil {
		return "", err
	}
	v, err := r.read(ctx, t, c)
	if err = errors.Join(err, t.Close()); err != nil {
		return "", err
	}
	b, err := json.Marshal(v)
	return string(b), err
}
