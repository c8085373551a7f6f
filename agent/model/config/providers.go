package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/agent/model/script"
	"github.com/teamctl/teamctl/team"
)

const (
	scriptName = script.Name
	scriptDemo = script.Demo
)

// Names of the protocols in the file.
const (
	apiMessages  = "messages"
	apiResponses = "responses"
	apiChat      = "chat"
)

// preset is a known provider.
type preset struct {
	api, baseURL   string
	keyEnv, urlEnv string
}

var known = map[string]preset{
	"anthropic":  {apiMessages, "https://api.anthropic.com", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"},
	"openai":     {apiResponses, "https://api.openai.com/v1", "OPENAI_API_KEY", "OPENAI_BASE_URL"},
	"google":     {apiChat, "https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY", "GEMINI_BASE_URL"},
	"openrouter": {apiChat, "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", "OPENROUTER_BASE_URL"},
}

// filled fills in missing fields of p.
func (k preset) filled(p Provider) Provider {
	p.API = cmp.Or(p.API, k.api)
	if p.BaseURL == "" && k.urlEnv != "" {
		p.BaseURL = os.Getenv(k.urlEnv)
	}
	p.BaseURL = strings.TrimRight(cmp.Or(p.BaseURL, k.baseURL), "/")
	if p.API == apiMessages { // the protocol's paths contain the version
		p.BaseURL = strings.TrimSuffix(p.BaseURL, "/v1")
	}
	if p.KeyEnv == "" && p.KeyFile == "" && p.KeyCommand == "" {
		p.KeyEnv = k.keyEnv
	}
	return p
}

// check validates a provider with defaults filled in.
func (p Provider) check() error {
	switch p.API {
	case apiMessages, apiResponses, apiChat:
	case "":
		return errors.New("api is missing: messages, responses or chat")
	default:
		return fmt.Errorf("unknown api %q: use messages, responses or chat", p.API)
	}
	if p.BaseURL == "" {
		return errors.New("baseURL is missing")
	}
	u, err := url.Parse(p.BaseURL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("baseURL %q is not the address of a server", p.BaseURL)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("baseURL has more than a host and a path: a key goes into keyEnv, keyFile or keyCommand")
	case u.Scheme == "http" && !local(u.Hostname()):
		return fmt.Errorf("baseURL %q is not on this machine: use https", p.BaseURL)
	}
	n := 0
	for _, s := range []string{p.KeyEnv, p.KeyFile, p.KeyCommand} {
		if s != "" {
			n++
		}
	}
	if n > 1 {
		return errors.New("more than one of keyEnv, keyFile and keyCommand")
	}
	return nil
}

// local reports whether a host is this machine.
func local(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// provider returns the provider with the name. Errors are CodeNotFound.
func (c *Config) provider(name string) (Provider, error) {
	p, ok := c.providers[name]
	if !ok {
		err := team.Errorf(team.CodeNotFound, "no provider %q", name).WithReason(team.ReasonNoProvider)
		if near := team.Closest(name, c.Providers()); near != "" {
			return p, err.WithHint("did you mean " + near + "? Otherwise add it to " + Name + " below providers")
		}
		return p, err.WithHint("providers: " + strings.Join(c.Providers(), ", ") + "; add others to " + Name + " below providers")
	}
	if err := p.check(); err != nil { // its address is from the environment
		return p, team.Errorf(team.CodeInvalid, "provider %s: %w", name, err).WithReason(team.ReasonBadConfig)
	}
	return p, nil
}

// Providers returns the sorted names of the configured providers.
func (c *Config) Providers() []string {
	return slices.Sorted(maps.Keys(c.providers))
}

// KeyVariables returns the environment variables that may contain a key, which child processes of
// an agent do not get.
func (c *Config) KeyVariables() []string {
	var out []string
	for _, k := range known {
		out = append(out, k.keyEnv)
	}
	for _, p := range c.providers {
		if p.KeyEnv != "" {
			out = append(out, p.KeyEnv)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Unused returns the sorted known providers whose key is in the environment and that are not
// configured.
func (c *Config) Unused() []string {
	var out []string
	for name, k := range known {
		if !c.Chosen && os.Getenv(k.keyEnv) != "" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
