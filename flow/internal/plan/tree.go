package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/curfew-dev/curfew/internal/clip"
	valueof "github.com/curfew-dev/curfew/internal/expr/value"
	"github.com/curfew-dev/curfew/internal/jsonx"
)

// tree is a value of a file in JSON or YAML. The two formats give the same tree.
type tree struct {
	up    *tree  // the object or the list that holds it, nil at the top
	name  string // of a member of an object, "" in a list
	index int    // in a list
	line  int    // in the file, from 1
	order int    // how many values begin before it in the file
	value any    // nil, bool, json.Number, string, []*tree, or []member
}

// path returns where the value is, from the top: spec.templates[2].dag.
func (t *tree) path() string {
	switch {
	case t.up == nil:
		return shownName(t.name)
	case t.name == "" && t.up.lists():
		return t.up.path() + "[" + strconv.Itoa(t.index) + "]"
	case t.up.up == nil && t.up.name == "":
		return shownName(t.name)
	}
	return t.up.path() + "." + shownName(t.name)
}

// shownName quotes a name with characters that do not print, such as line breaks.
func shownName(name string) string {
	if strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }) {
		return strconv.Quote(name)
	}
	return name
}

func (t *tree) lists() bool {
	_, ok := t.value.([]*tree)
	return ok
}

// member returns a member of an object, nil if it has none with the name.
func (t *tree) member(name string) *tree {
	members, _ := t.value.([]member)
	for _, m := range members {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// with returns a value that stands for another one in faults, as a member of it.
func (t *tree) with(name string, value any) *tree {
	return &tree{up: t, name: name, line: t.line, order: t.order, value: value}
}

// texts calls yield for each text with expressions in a value.
func (t *tree) texts(yield func(*tree) bool) {
	var visit func(t *tree) bool
	visit = func(t *tree) bool {
		switch v := t.value.(type) {
		case string:
			return !strings.Contains(v, "{{") || yield(t)
		case []member:
			return !slices.ContainsFunc(v, func(m member) bool { return !visit(m.value) })
		case []*tree:
			return !slices.ContainsFunc(v, func(t *tree) bool { return !visit(t) })
		}
		return true
	}
	visit(t)
}

// at returns the value at a path below an object or a list, such as .items[2], or the value itself if the path leads nowhere.
func (t *tree) at(path string) *tree {
	if found := t.find(path); found != nil {
		return found
	}
	return t
}

func (t *tree) find(path string) *tree {
	if path == "" {
		return t
	}
	switch v := t.value.(type) {
	case []member:
		for _, m := range v {
			if rest, ok := strings.CutPrefix(path, "."+m.name); ok { // a name can have dots and brackets in it
				if found := m.value.find(rest); found != nil {
					return found
				}
			}
		}
	case []*tree:
		var i int
		if n, _ := fmt.Sscanf(path, "[%d]", &i); n == 1 && i < len(v) {
			_, rest, _ := strings.Cut(path, "]")
			return v[i].find(rest)
		}
	}
	return nil
}

// member is a member of an object. Objects keep the order of the file.
type member struct {
	name  string
	value *tree
}

// Limits of a file.
const (
	maxBytes = 1 << 20
	maxDepth = 40
)

// parse reads a file. A file that begins with { is JSON, any other is YAML.
func parse(text []byte) (*tree, error) {
	switch {
	case len(text) > maxBytes:
		return nil, fmt.Errorf("the definition has %d bytes, the limit is %d", len(text), maxBytes)
	case !utf8.Valid(text):
		return nil, errors.New("the definition is not UTF-8")
	case len(bytes.TrimSpace(text)) == 0:
		return nil, errors.New("the definition is empty")
	case bytes.TrimSpace(text)[0] == '{':
		return parseJSON(text)
	}
	return parseYAML(text)
}

func parseJSON(text []byte) (*tree, error) {
	v, err := jsonx.Parse(text)
	var fault *jsonx.Error
	if errors.As(err, &fault) {
		return nil, fmt.Errorf("line %d: %w", fault.Line, fault.Err)
	}
	p, t := &jsonParser{text: text, line: 1}, &tree{}
	if err := p.value(t, v, 0); err != nil {
		return nil, fmt.Errorf("line %d: %w", p.line, err)
	}
	return t, nil
}

type jsonParser struct {
	text  []byte
	order int // how many values have begun
	line  int // of the value that began last
	at    int // where that value begins
}

// value puts a value into t, which has its place.
func (p *jsonParser) value(t *tree, v jsonx.Value, depth int) error {
	p.line += bytes.Count(p.text[p.at:v.At()], []byte("\n"))
	p.at = v.At()
	if depth > maxDepth {
		return fmt.Errorf("%s is nested deeper than %d levels", t.path(), maxDepth)
	}
	t.line, t.order = p.line, p.order
	p.order++
	switch {
	case v.IsObject():
		o := &members{of: t}
		for m := range v.Members() {
			value := &tree{up: t, name: m.Name}
			if err := p.value(value, m.Value, depth+1); err != nil {
				return err
			}
			if err := o.add(value); err != nil {
				return err
			}
		}
		o.done()
	case v.IsList():
		list := []*tree{}
		t.value = list
		for item := range v.Elements() {
			value := &tree{up: t, index: len(list)}
			if err := p.value(value, item, depth+1); err != nil {
				return err
			}
			list = append(list, value)
		}
		t.value = list
	default:
		t.value = v.Scalar()
	}
	return nil
}

func parseYAML(text []byte) (*tree, error) {
	in := yaml.NewDecoder(bytes.NewReader(text))
	var document yaml.Node
	if err := in.Decode(&document); errors.Is(err, io.EOF) {
		return nil, errors.New("the definition is empty")
	} else if err != nil {
		return nil, plainYAML(err)
	}
	if err := in.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("a file holds one definition: remove what follows the second ---")
	}
	if document.Kind != yaml.DocumentNode || len(document.Content) != 1 {
		return nil, errors.New("the definition is empty")
	}
	p, t := &yamlParser{}, &tree{}
	return t, p.value(document.Content[0], t, 0)
}

func plainYAML(err error) error {
	return errors.New(strings.TrimPrefix(strings.Join(strings.Fields(err.Error()), " "), "yaml: "))
}

type yamlParser struct{ order int } // how many values have begun

// value puts a node into t, which has its place.
func (p *yamlParser) value(n *yaml.Node, t *tree, depth int) error {
	t.line, t.order = n.Line, p.order
	p.order++
	switch {
	case depth > maxDepth:
		return fmt.Errorf("line %d: %s is nested deeper than %d levels", n.Line, t.path(), maxDepth)
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return fmt.Errorf("line %d: anchors and aliases are not allowed: write the value out", n.Line)
	case n.Kind == yaml.MappingNode:
		o := &members{of: t}
		for i := 0; i < len(n.Content); i += 2 {
			name := n.Content[i]
			if name.Kind != yaml.ScalarNode || name.Tag == "!!merge" {
				return fmt.Errorf("line %d: a name must be a text", name.Line)
			}
			value := &tree{up: t, name: name.Value}
			if err := p.value(n.Content[i+1], value, depth+1); err != nil {
				return err
			}
			if err := o.add(value); err != nil {
				return fmt.Errorf("line %d: %w", name.Line, err)
			}
		}
		o.done()
	case n.Kind == yaml.SequenceNode:
		list := make([]*tree, len(n.Content))
		t.value = list
		for i, item := range n.Content {
			list[i] = &tree{up: t, index: i}
			if err := p.value(item, list[i], depth+1); err != nil {
				return err
			}
		}
	default:
		return t.scalar(n)
	}
	return nil
}

// scalar converts a scalar of YAML to the value that JSON would have. A date is a text.
func (t *tree) scalar(n *yaml.Node) error {
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		var b bool
		err := n.Decode(&b)
		t.value = b
		return err
	case "!!int", "!!float":
		if !json.Valid([]byte(n.Value)) {
			return fmt.Errorf("line %d: %s is not a number as JSON writes it: write it in decimals, or in quotes if it is a text", n.Line, clip.Text(n.Value, quoted))
		}
		t.value = json.Number(n.Value)
	case "!!str", "!!timestamp":
		t.value = n.Value
	default:
		return fmt.Errorf("line %d: a value of the type %s is not allowed: write a text, a number, true, false or null", n.Line, n.Tag)
	}
	return nil
}

// members collects the members of an object.
type members struct {
	of   *tree
	all  []member
	seen map[string]bool // the names, of an object with many
}

// few is up to how many names are compared one by one.
const few = 16

// add adds a member. No object has two of a name.
func (o *members) add(value *tree) error {
	twice := o.seen[value.name]
	if o.seen == nil {
		twice = slices.ContainsFunc(o.all, func(m member) bool { return m.name == value.name })
	}
	if twice {
		return fmt.Errorf("%s is given twice", value.path())
	}
	o.all = append(o.all, member{value.name, value})
	if o.seen != nil {
		o.seen[value.name] = true
	} else if len(o.all) > few {
		o.seen = map[string]bool{}
		for _, m := range o.all {
			o.seen[m.name] = true
		}
	}
	return nil
}

// done gives the object its members.
func (o *members) done() { o.of.value = append([]member{}, o.all...) }

// plain returns the value as encoding/json decodes it, with numbers as float64 or int.
func (t *tree) plain() any {
	switch v := t.value.(type) {
	case []member:
		object := make(map[string]any, len(v))
		for _, m := range v {
			object[m.name] = m.value.plain()
		}
		return object
	case []*tree:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = item.plain()
		}
		return list
	case json.Number:
		return valueof.Number(v)
	}
	return t.value
}

// whole returns a whole number. It can be written with a fraction of 0, as JSON Schema allows: 3.0.
func (t *tree) whole() (i int64, ok bool) {
	n, _ := t.value.(json.Number)
	if i, err := n.Int64(); err == nil {
		return i, true
	}
	f, err := n.Float64()
	return int64(f), err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53
}

// kind describes the type of a value in an error.
func (t *tree) kind() string {
	switch t.value.(type) {
	case nil:
		return "null"
	case bool:
		return "true or false"
	case json.Number:
		return "a number"
	case string:
		return "a text"
	case []*tree:
		return "a list"
	}
	return "an object"
}
