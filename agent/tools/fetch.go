package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/net/html"
	"golang.org/x/net/html/charset"

	"github.com/teamctl/teamctl/internal/permit"
)

// Limits of a fetch.
const (
	fetchBytes     = 1 << 20
	fetchRedirects = 5
	fetchTimeout   = time.Minute
)

type fetchIn struct {
	URL string `json:"url" jsonschema:"http or https address"`
}

func (s *Space) fetchTool() Tool {
	return Typed("fetch", "Get a page by its address: at most 1 MB, as text.", Fetch, true,
		func(in fetchIn) Subject {
			u, err := url.Parse(in.URL)
			if err != nil {
				return Subject{}
			}
			return Subject{Host: u.Hostname()}
		},
		func(ctx context.Context, _ Call, in fetchIn) (Out, error) {
			u, err := url.Parse(in.URL)
			switch {
			case err != nil:
				return failed("%s", err), nil
			case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
				return failed("%s: give an http or https address", in.URL), nil
			case u.User != nil:
				return failed("%s: an address has no user and password", in.URL), nil
			}
			text, err := s.get(ctx, u)
			if err != nil && ctx.Err() != nil {
				return Out{}, context.Cause(ctx)
			}
			if err != nil {
				return failed("%s", err), nil
			}
			return s.fit("fetch", text)
		})
}

var errPrivate = errors.New("its address is private: a rule of the team has to allow the host")

// get fetches a page. It checks the address of each connection after its name was resolved, since
// a name or a redirect may lead anywhere.
func (s *Space) get(ctx context.Context, u *url.URL) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	rules, err := s.rules(ctx)
	if err != nil {
		return "", err
	}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		d := net.Dialer{Timeout: 20 * time.Second}
		if host, _, err := net.SplitHostPort(address); err != nil || rules.ofHost(host) != permit.Allow {
			d.Control = publicOnly
		}
		return d.DialContext(ctx, network, address)
	}
	transport := &http.Transport{DialContext: dial, Proxy: nil, DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) > fetchRedirects {
			return fmt.Errorf("more than %d redirects", fetchRedirects)
		}
		if rules.ofHost(r.URL.Hostname()) == permit.Deny { // Gate has judged the first one
			return fmt.Errorf("redirected to %s, which a rule of the team denies", r.URL.Hostname())
		}
		return nil
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("User-Agent", "teamctl")
	req.Header.Set("Accept", "text/html, text/*, application/json, */*;q=0.1")
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(io.LimitReader(resp.Body, fetchBytes+1))
	if err != nil {
		return "", err
	}
	cut := len(b) > fetchBytes
	b = b[:min(len(b), fetchBytes)]
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	head := fmt.Sprintf("[%s, %s]\n", resp.Status, resp.Request.URL)
	if resp.StatusCode >= 400 {
		return "", errors.New(head + cutLine(pageText(kind, resp.Header.Get("Content-Type"), b)))
	}
	if binary(b) && !strings.HasPrefix(kind, "text/") {
		return "", fmt.Errorf("%s: %s of %d bytes is not text", u, kind, len(b))
	}
	text := pageText(kind, resp.Header.Get("Content-Type"), b)
	if cut {
		text += "\n[cut after 1 MB]"
	}
	return head + text, nil
}

// publicOnly is a dialer's Control that refuses addresses outside the public internet.
func publicOnly(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil || !public(ap.Addr()) {
		return errPrivate
	}
	return nil
}

// public reports whether an address belongs to the public internet.
func public(a netip.Addr) bool {
	a = a.Unmap()
	return a.IsGlobalUnicast() && !a.IsPrivate() && !slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(a) })
}

// special lists ranges that look global and lead nowhere, or back (RFC 6890).
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("2001::/32"),
	netip.MustParsePrefix("::/96"), netip.MustParsePrefix("fec0::/10"),
}

// pageText returns a page as text, in UTF-8.
func pageText(kind, contentType string, b []byte) string {
	if r, err := charset.NewReader(bytes.NewReader(b), contentType); err == nil {
		if u, err := io.ReadAll(r); err == nil {
			b = u
		}
	}
	if kind != "text/html" && kind != "application/xhtml+xml" {
		return strings.ToValidUTF8(string(b), "\ufffd")
	}
	var out strings.Builder
	hidden := 0
	z := html.NewTokenizer(bytes.NewReader(b))
	for {
		switch tok := z.Next(); tok {
		case html.ErrorToken:
			return tidy(out.String())
		case html.StartTagToken, html.EndTagToken, html.SelfClosingTagToken:
			name, _ := z.TagName()
			switch string(name) {
			case "script", "style", "noscript", "svg", "template":
				if tok == html.StartTagToken {
					hidden++
				} else if tok == html.EndTagToken && hidden > 0 {
					hidden--
				}
			case "p", "div", "br", "li", "tr", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "section", "article", "table", "ul", "ol", "title":
				out.WriteByte('\n')
			case "td", "th":
				out.WriteByte(' ')
			}
		case html.TextToken:
			if hidden == 0 {
				out.Write(z.Text())
			}
		case html.CommentToken, html.DoctypeToken:
		}
	}
}

// tidy removes formatting blanks and entities of a page.
func tidy(text string) string {
	var out []string
	for line := range strings.Lines(html.UnescapeString(text)) {
		line = strings.Join(strings.Fields(line), " ")
		if line != "" || len(out) > 0 && out[len(out)-1] != "" {
			out = append(out, line)
		}
	}
	return strings.TrimSpace(strings.Join(out, "\n"))
}
