package bridge

import "github.com/teamctl/teamctl/ledger"

// rows are the records of a bridge. A pass looks several of them up for each task, so they are found
// by name, however many there are.
type rows struct {
	kinds map[ledger.MirrorKind][]ledger.Mirrored // in the ledger's order
	there map[rowName]int                         // index in the list of the kind
	here  map[rowName]int
}

// rowName is a name of one side. Here it may be that of several records: the first one counts.
type rowName struct {
	kind ledger.MirrorKind
	name string
}

func newRows(all []ledger.Mirrored) rows {
	r := rows{kinds: map[ledger.MirrorKind][]ledger.Mirrored{}, there: make(map[rowName]int, len(all)), here: make(map[rowName]int, len(all))}
	for _, m := range all {
		r.add(m)
	}
	return r
}

func (r rows) add(m ledger.Mirrored) {
	i := len(r.kinds[m.Kind])
	r.kinds[m.Kind] = append(r.kinds[m.Kind], m)
	for _, by := range []struct {
		side map[rowName]int
		name string
	}{{r.there, m.There}, {r.here, m.Here}} {
		at := rowName{m.Kind, by.name}
		if _, known := by.side[at]; !known {
			by.side[at] = i
		}
	}
}

func (r rows) find(side map[rowName]int, kind ledger.MirrorKind, name string) (ledger.Mirrored, bool) {
	i, ok := side[rowName{kind, name}]
	if !ok {
		return ledger.Mirrored{}, false
	}
	return r.kinds[kind][i], true
}

// there finds the row with a native name.
func (p *pass) there(kind ledger.MirrorKind, name string) (ledger.Mirrored, bool) {
	return p.rows.find(p.rows.there, kind, name)
}

// here finds the row with a name in our team.
func (p *pass) here(kind ledger.MirrorKind, name string) (ledger.Mirrored, bool) {
	return p.rows.find(p.rows.here, kind, name)
}

// of returns the rows of a kind, to be read only.
func (p *pass) of(kind ledger.MirrorKind) []ledger.Mirrored { return p.rows.kinds[kind] }
