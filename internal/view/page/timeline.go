package page

import (
	"html/template"
	"io"
	"sync"
	"time"

	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/internal/view"
)

// funcs are the functions available in all documents.
var funcs = template.FuncMap{
	"clean":    view.Clean,
	"plain":    plain.Text,
	"duration": view.Duration,
	"took":     func(from, to time.Time) string { return view.Duration(to.Sub(from)) },
	"zone":     func(t time.Time) string { return "UTC" + t.Format("-07:00") },
	"stamp":    func(t time.Time) string { return t.Format("2006-01-02 15:04:05") },
	// svg marks a drawing of package view, which escapes every text in it, as safe.
	"svg": func(s string) template.HTML { return template.HTML(s) },
}

// style is the style of documents that are read offline and printed.
const style = `:root{color-scheme:light dark;background:Canvas}
body{font:15px/1.5 system-ui,sans-serif;max-width:75rem;margin:0 auto;padding:1rem}
table{border-collapse:collapse;margin:.5rem 0 1rem}th,td{text-align:left;padding:.2rem .8rem .2rem 0;vertical-align:top;border-bottom:1px solid #8884}
pre,code{font:13px/1.4 ui-monospace,monospace}pre{white-space:pre-wrap;overflow-wrap:anywhere;border:1px solid #8884;padding:.5rem;margin:.3rem 0}
svg{max-width:100%;height:auto}.n{text-align:right}figure{margin:0;overflow-x:auto}summary{cursor:pointer}
.wide{overflow-x:auto}
.add{color:#17692b}.del{color:#b91c1c}ins,del{text-decoration:underline}ins{background:#1e7e3433}del{background:#b91c1c33}small{opacity:.8}
@media screen and (prefers-color-scheme:dark){.add{color:#5fc97a}.del{color:#ff8a85}}
@media print{body{max-width:none;padding:0}.wide{overflow:visible}details>*{display:block}h2{break-after:avoid}tr,figure{break-inside:avoid}}`

const timelineText = `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Timeline of {{clean .Team}}</title><style>` + style + `</style>
<h1>Timeline of {{clean .Team}}{{if .Run}}, run {{.Run}}{{end}}</h1>
<p>{{stamp .From}} to {{stamp .To}}. History goes back to {{stamp .History}}.</p>
<figure>{{svg .SVG}}</figure>
<h2>Time of each member</h2>
{{template "lanes" .}}
<h2>Attempts at tasks</h2>
<div class="wide" tabindex="0" role="region" aria-label="Attempts at tasks"><table><tr><th>task<th>member<th>attempt<th>from<th class="n">took<th>end</tr>
{{range .Lanes}}{{$m := .Member}}{{range .Tasks}}<tr><td>{{clean .Task}} {{clean .Subject}}<td>{{clean $m}}<td>{{if .Attempt}}{{.Attempt}}{{end}}<td>{{stamp .From}}<td class="n">{{took .From .To}}<td>{{or .End "held"}}</tr>
{{end}}{{end}}</table></div>
</html>
`

// lanesText is the table of members' activities.
const lanesText = `<div class="wide" tabindex="0" role="region" aria-label="Time of each member"><table><tr><th>member<th class="n">working<th class="n">waiting<th class="n">limited<th class="n">idle<th class="n">down<th class="n">not known<th>at the end</tr>
{{$t := .}}{{range .Lanes}}<tr><td>{{clean .Member}}<td class="n">{{duration (.In "working")}}<td class="n">{{duration (.In "waiting")}}<td class="n">{{duration (.In "limited")}}<td class="n">{{duration (.In "idle")}}<td class="n">{{duration (.In "down")}}<td class="n">{{duration (.In "unknown")}}<td>{{.Note $t.To}}</tr>
{{end}}</table></div>
`

var timelinePage = sync.OnceValue(func() *template.Template {
	t := template.Must(template.New("timeline").Funcs(funcs).Parse(timelineText))
	template.Must(t.New("lanes").Parse(lanesText))
	return t
})

// Timeline writes a timeline as a document.
func Timeline(w io.Writer, t view.Timeline) error { return timelinePage().Execute(w, t) }
