package report

import (
	"fmt"
	"html"
	"html/template"
	"strings"
	"unicode/utf8"
)

// drawing writes SVG. Attribute values and text are escaped here, always, and
// colours come from the page's style by class: the policy allows no style
// attribute.
type drawing struct{ b strings.Builder }

// tag writes an element without content; attrs are name, value, name, …
func (d *drawing) tag(name string, attrs ...any) {
	d.open(name, attrs...)
	d.close(name)
}

func (d *drawing) open(name string, attrs ...any) {
	d.b.WriteString("<" + name)
	for i := 0; i+1 < len(attrs); i += 2 {
		v := attrs[i+1]
		if f, ok := v.(float64); ok {
			v = num(f)
		}
		fmt.Fprintf(&d.b, ` %s="%s"`, attrs[i], html.EscapeString(clean(fmt.Sprint(v))))
	}
	d.b.WriteString(">")
}

func (d *drawing) close(name string) { d.b.WriteString("</" + name + ">") }

// text writes one line of text; class chooses size, colour and anchor.
func (d *drawing) text(class string, x, y float64, s string) {
	d.open("text", "class", class, "x", x, "y", y)
	d.b.WriteString(html.EscapeString(clean(s)))
	d.close("text")
}

func (d *drawing) title(s string) {
	d.b.WriteString("<title>" + html.EscapeString(clean(s)) + "</title>")
}

func (d *drawing) line(class string, x1, y1, x2, y2 float64) {
	d.tag("path", "class", class, "d", fmt.Sprintf("M%s %sL%s %s", num(x1), num(y1), num(x2), num(y2)))
}

func (d *drawing) rect(class string, x, y, w, h float64) {
	d.tag("rect", "class", class, "x", x, "y", y, "width", max(0, w), "height", max(0, h))
}

// done closes the picture and hands it to the page as markup.
func (d *drawing) done(width, height float64, title, class string) template.HTML {
	var head drawing
	head.open("svg", "xmlns", "http://www.w3.org/2000/svg", "role", "img", "class", class,
		"viewBox", "0 0 "+num(width)+" "+num(height), "aria-label", title)
	return template.HTML(head.b.String() + d.b.String() + "</svg>")
}

// num writes a coordinate with at most one decimal.
func num(f float64) string {
	s := fmt.Sprintf("%.1f", f)
	return strings.TrimSuffix(s, ".0")
}

// width estimates the width of text at a font size in px, for the wider of
// the usual sans-serif fonts; wide scripts count double.
func width(s string, size float64) float64 {
	w := 0.0
	for _, r := range s {
		switch {
		case r > 0x2e80, r >= 0x2460 && r < 0x2500:
			w += 1
		case strings.ContainsRune("iljftr.,:;'|!()[] ", r):
			w += 0.36
		case r == 'm' || r == 'w' || r == 'M' || r == 'W':
			w += 0.95
		case r >= 'A' && r <= 'Z':
			w += 0.7
		default:
			w += 0.62
		}
	}
	return w * size
}

// fitEnd cuts text at its end to a width in px; "" if next to nothing fits.
func fitEnd(s string, px, size float64) string {
	if width(s, size) <= px {
		return s
	}
	r := []rune(s)
	for len(r) > 0 && width(string(r)+"…", size) > px {
		r = r[:len(r)-1]
	}
	if len(r) < 4 {
		return ""
	}
	return string(r) + "…"
}

func fit(s string, px, size float64) string {
	n := utf8.RuneCountInString(s)
	for width(s, size) > px {
		n = min(n-1, int(px/(size*0.5)))
		if n < 5 {
			return ""
		}
		s = shorten(s, n)
	}
	return s
}
