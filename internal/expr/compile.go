package expr

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/checker"
	"github.com/expr-lang/expr/compiler"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"

	"github.com/curfew-dev/curfew/internal/clip"
)

// compile compiles an expression. It does so in steps instead of one call of the library, so that the tree that the rules check
// is the tree that runs.
func compile(source string, config *conf.Config, l language) (program *vm.Program, err error) {
	defer func() {
		if p := recover(); p != nil {
			program, err = nil, l.refuse(nil, "it cannot be compiled (%s): write a simpler expression", sentence(fmt.Sprint(p)))
		}
	}()
	config.MaxNodes = maxNodes
	// The optimizer copies parts of a tree, and copies of copies can make it huge.
	config.Optimize = false
	tree, err := parser.ParseWithConfig(source, config)
	if err != nil {
		return nil, l.library(err)
	}
	r := rules{language: l}
	if err := r.check(&tree.Node); err != nil {
		return nil, err
	}
	if _, err := checker.Check(tree, config); err != nil {
		return nil, l.library(err)
	}
	if err := l.types(tree.Node); err != nil {
		return nil, err
	}
	if program, err = compiler.Compile(tree, config); err != nil {
		return nil, l.library(err)
	}
	return program, nil
}

// run evaluates a compiled expression. The error is one line.
func run(program *vm.Program, variables any) (result any, err error) {
	defer func() {
		if p := recover(); p != nil { // the library recovers from panics, but not from those of its recovery
			err = errors.New(sentence(fmt.Sprint(p)))
		}
	}()
	machine := vm.VM{MemoryBudget: memoryBudget}
	if result, err = machine.Run(program, variables); err != nil {
		return nil, errors.New(message(err))
	}
	return result, nil
}

// message returns the message of an error of the library, with the position in numbers. The message of the library draws it on
// several lines.
func message(err error) string {
	var located *file.Error
	if errors.As(err, &located) {
		return fmt.Sprintf("at character %d: %s", located.From+1, sentence(located.Message))
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	return sentence(text)
}

// sentence makes a text that can contain foreign input one line of bounded length.
func sentence(text string) string {
	return strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(clip.Text(text, quoted), "?"))
}

// at returns the position of a node for an error, "" if there is no node.
func at(node ast.Node) string {
	if node == nil {
		return ""
	}
	return fmt.Sprintf("at character %d: ", node.Location().From+1)
}
