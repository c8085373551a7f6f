package codex

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/teamctl/teamctl/internal/courier"
)

// Trust asks the app-server at the socket. Codex looks for the answer at the directory, at its
// work tree and at the repository of the work tree. An error of a server that does not say counts
// as an answer: Codex then ignores the repository's configuration.
func Trust(ctx context.Context, socket, dir string) (courier.Trust, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	conn, err := dialRPC(ctx, socket)
	if err != nil {
		return courier.Trust{}, err
	}
	var reader sync.WaitGroup
	reader.Go(func() { _ = conn.serve(ctx, func() {}, func(rpcMessage) {}) }) // a call returns the reason of its end
	defer reader.Wait()
	defer conn.close()
	var server struct{ CodexHome string }
	if err := conn.hello(ctx, &server); err != nil {
		return courier.Trust{}, err
	}
	var out struct {
		Config struct {
			Projects map[string]struct {
				Level string `json:"trust_level"`
			} `json:"projects"`
		} `json:"config"`
	}
	err = conn.call(ctx, "config/read", map[string]string{"cwd": dir}, &out)
	if no := (*rpcError)(nil); errors.As(err, &no) {
		return courier.Trust{Known: true}, nil
	}
	if err != nil {
		return courier.Trust{}, err
	}
	said, err := json.Marshal(out.Config.Projects)
	t := courier.Trust{Said: string(said), Dir: server.CodexHome}
	for _, p := range append([]string{dir}, courier.RepositoryOf(ctx, dir)...) {
		for _, p := range []string{p, courier.RealPath(p)} {
			level := out.Config.Projects[p].Level
			t.Known = t.Known || level != ""
			t.Trusted = t.Trusted || level == "trusted"
		}
	}
	return t, err
}
