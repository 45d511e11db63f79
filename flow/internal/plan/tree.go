package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	valueof "github.com/curfew-dev/curfew/flow/internal/value"

	"github.com/curfew-dev/curfew/internal/jsonerr"
)

// tree is a value of a file in JSON or YAML. The two formats give the same tree.
type tree struct {
	path  string // from the top: spec.templates[2].dag
	line  int    // in the file, from 1
	value any    // nil, bool, json.Number, string, []*tree, or []member
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
		p := &jsonParser{text: text, in: json.NewDecoder(bytes.NewReader(text))}
		p.in.UseNumber()
		t, err := p.value("", 0)
		if err == nil {
			if _, more := p.in.Token(); !errors.Is(more, io.EOF) {
				err = errors.New("there is more after the end of the definition")
			}
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", p.line(), jsonerr.Plain(err))
		}
		return t, nil
	}
	return parseYAML(text)
}

type jsonParser struct {
	text []byte
	in   *json.Decoder
}

// line returns the line of what was read last.
func (p *jsonParser) line() int {
	return 1 + bytes.Count(p.text[:min(int(p.in.InputOffset()), len(p.text))], []byte("\n"))
}

func (p *jsonParser) value(path string, depth int) (*tree, error) {
	token, err := p.in.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	if depth > maxDepth {
		return nil, fmt.Errorf("%s is nested deeper than %d levels", path, maxDepth)
	}
	t := &tree{path: path, line: p.line(), value: token}
	switch token {
	case json.Delim('{'):
		members := []member{}
		for p.in.More() {
			name, err := p.in.Token()
			if err != nil {
				return nil, err
			}
			value, err := p.value(below(path, name.(string)), depth+1)
			if err != nil {
				return nil, err
			}
			if members, err = add(members, name.(string), value); err != nil {
				return nil, err
			}
		}
		t.value = members
	case json.Delim('['):
		list := []*tree{}
		for p.in.More() {
			value, err := p.value(at(path, len(list)), depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		t.value = list
	default:
		return t, nil
	}
	_, err = p.in.Token() // the end of the object or list
	return t, err
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
	return fromYAML(document.Content[0], "", 0)
}

func plainYAML(err error) error {
	return errors.New(strings.TrimPrefix(strings.Join(strings.Fields(err.Error()), " "), "yaml: "))
}

func fromYAML(n *yaml.Node, path string, depth int) (*tree, error) {
	t := &tree{path: path, line: n.Line}
	switch {
	case depth > maxDepth:
		return nil, fmt.Errorf("line %d: %s is nested deeper than %d levels", n.Line, path, maxDepth)
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return nil, fmt.Errorf("line %d: anchors and aliases are not allowed: write the value out", n.Line)
	case n.Kind == yaml.MappingNode:
		members := []member{}
		for i := 0; i < len(n.Content); i += 2 {
			name := n.Content[i]
			if name.Kind != yaml.ScalarNode || name.Tag == "!!merge" {
				return nil, fmt.Errorf("line %d: a name must be a text", name.Line)
			}
			value, err := fromYAML(n.Content[i+1], below(path, name.Value), depth+1)
			if err != nil {
				return nil, err
			}
			if members, err = add(members, name.Value, value); err != nil {
				return nil, fmt.Errorf("line %d: %w", name.Line, err)
			}
		}
		t.value = members
	case n.Kind == yaml.SequenceNode:
		list := []*tree{}
		for i, item := range n.Content {
			value, err := fromYAML(item, at(path, i), depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		t.value = list
	default:
		return t, t.scalar(n)
	}
	return t, nil
}

// scalar sets the value of a scalar of YAML as JSON has it. A date is a text.
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
			return fmt.Errorf("line %d: %s is not a number as JSON writes it: write it in decimals, or in quotes if it is a text", n.Line, clip(n.Value))
		}
		t.value = json.Number(n.Value)
	case "!!str", "!!timestamp":
		t.value = n.Value
	default:
		return fmt.Errorf("line %d: a value of the type %s is not allowed: write a text, a number, true, false or null", n.Line, n.Tag)
	}
	return nil
}

func add(members []member, name string, value *tree) ([]member, error) {
	for _, m := range members {
		if m.name == name {
			return nil, fmt.Errorf("%s is given twice", value.path)
		}
	}
	return append(members, member{name, value}), nil
}

// below returns the path of a member.
func below(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func at(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

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
