package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	maxTools       = 256 // per server
	maxName        = 64  // limit of the providers' protocols
	maxDescription = 4 << 10
	maxText        = 8 << 20 // per result, which the caller cuts further
)

// names maps tools to names that models can call: mcp__<server>__<tool>.
type names struct {
	prefix string
	theirs map[string]string // the server's name by ours
}

func newNames(server string) *names {
	return &names{prefix: "mcp__" + server + "__", theirs: map[string]string{}}
}

// give returns our name of a tool: the server's name if possible, else one with a hash of it.
func (n *names) give(tool string) string {
	fit := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, tool)
	name := n.prefix + fit
	if _, taken := n.theirs[name]; taken || fit != tool || len(name) > maxName {
		sum := sha256.Sum256([]byte(tool))
		hash := "_" + hex.EncodeToString(sum[:4])
		name = name[:min(len(name), maxName-len(hash))] + hash
	}
	n.theirs[name] = tool
	return name
}

// render returns the result of a call as text.
func render(r *sdk.CallToolResult) Result {
	var out []string
	for _, c := range r.Content {
		switch c := c.(type) {
		case *sdk.TextContent:
			out = append(out, c.Text)
		case *sdk.ImageContent:
			out = append(out, fmt.Sprintf("[an image of type %s, %d bytes, is left out]", c.MIMEType, len(c.Data)))
		case *sdk.AudioContent:
			out = append(out, fmt.Sprintf("[a sound of type %s, %d bytes, is left out]", c.MIMEType, len(c.Data)))
		case *sdk.ResourceLink:
			out = append(out, fmt.Sprintf("[resource %s: %s]", c.Name, c.URI))
		case *sdk.EmbeddedResource:
			if c.Resource != nil && c.Resource.Text != "" {
				out = append(out, c.Resource.Text)
			} else if c.Resource != nil {
				out = append(out, fmt.Sprintf("[resource %s, %d bytes, is left out]", c.Resource.URI, len(c.Resource.Blob)))
			}
		}
	}
	if len(out) == 0 && r.StructuredContent != nil {
		if b, err := json.Marshal(r.StructuredContent); err == nil {
			out = append(out, string(b))
		}
	}
	return Result{Text: cut(strings.Join(out, "\n"), maxText), Failed: r.IsError}
}

// refused reports whether a running server has answered a call with an error.
func refused(err error) bool {
	var e *jsonrpc.Error
	return errors.As(err, &e)
}

func cut(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + fmt.Sprintf("\n[%d more bytes are left out]", len(s)-n)
}
