package program

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/teamctl/teamctl/agent/llm"
	"github.com/teamctl/teamctl/agent/tools"
)

// texts stores results, answers and messages that are too long for an entry in files of the
// member's bundle.
type texts struct{ *Program }

// Keep implements llm.Texts.
func (x texts) Keep(text string) (string, error) {
	file, err := tools.Spill(x.outputs(), "entry", text)
	return filepath.Base(file), err
}

// Read implements llm.Texts.
func (x texts) Read(name string) (string, error) {
	b, err := os.ReadFile(filepath.Join(x.outputs(), filepath.Base(name)))
	return string(b), err
}

// mailBegins is the number of characters in the entry of a long message.
const mailBegins = 200

// keep is the Keep of agent.ServeIn. A message that cannot be written to a file stays in the ledger.
func (p *Program) keep(text string) (short, name string) {
	short, name, err := llm.Keep(texts{p}, text, mailBegins)
	if err != nil && p.Env.Out != nil {
		_, _ = fmt.Fprintf(p.Env.Out, "a message of %d bytes stands in the ledger: %v\n", len(text), err)
	}
	return short, name
}

// list returns the input of a session's newest todo call; nil without one.
func (p *Program) list(ctx context.Context, session string) (json.RawMessage, error) {
	in, ok, err := p.Team.Ledger.NewestInput(ctx, session, "todo")
	if err != nil || !ok {
		return nil, err
	}
	if in.File == "" {
		return in.JSON, nil
	}
	text, err := texts{p}.Read(in.File)
	if errors.Is(err, fs.ErrNotExist) { // a list is not a reason to stop
		return nil, nil
	}
	return json.RawMessage(text), err
}
