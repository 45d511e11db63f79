package retryexpr

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/expr-lang/expr/vm"

	"github.com/curfew-dev/curfew/refusal"
)

// Attempt is what a retry expression sees of an attempt that has ended.
type Attempt struct {
	Kind  string // of the task; empty: the expression's
	Phase string // "Failed", "Error", "Timeout"
	Code  int    // exit code, where the handler gave one
	// Msg is what the handler said. An expression sees its first 4 KiB.
	Msg string
	// Parameters are outputs.parameters: what encoding/json makes of an object.
	Parameters map[string]any
}

// TimedOut is an attempt that was ended by its time limit. The sweep ends it, not
// a handler, so that all of it is known beforehand.
func TimedOut(kind string) Attempt {
	return Attempt{Kind: kind, Phase: "Timeout", Code: timedOutCode, Msg: "Task exceeded deadline"}
}

// timedOutCode is no exit code: no handler came to an end that could have one.
const timedOutCode = -1

// Check refuses an expression that cannot be read, with an *InvalidError.
func Check(kind, source string) error {
	_, err := compileRetry(kind, source)
	return err
}

// Evaluate answers whether an attempt of a task of this kind is to be repeated. An
// expression that cannot be read gives an *InvalidError. One that fails on this attempt,
// or gives neither true nor false, gives false and an error that says why.
func Evaluate(kind, source string, a Attempt) (bool, error) {
	e, err := compileRetry(kind, source)
	if err != nil {
		return false, err
	}
	return e.allows(a)
}

// retryExpression is a checked expression. It may be asked by many at once.
type retryExpression struct {
	kind       string
	program    *vm.Program
	parameters []string // the outputs.parameters that it reads by name
	everything bool     // it reads them in another way too
}

// The variables as expr sees them. A task's name is not among them: the rules check it
// and put taskVariable in its place.
type exprScope struct {
	Task exprTask `expr:"$task"`
}

type exprTask struct {
	Phase   string      `expr:"phase"`
	Code    int         `expr:"code"`
	Msg     string      `expr:"msg"`
	Outputs exprOutputs `expr:"outputs"`
}

type exprOutputs struct {
	Parameters map[string]any `expr:"parameters"`
}

// memoryBudget bounds the elements of the ranges and lists that one evaluation makes.
const memoryBudget = 10_000

// allows is the answer for one attempt. What succeeded or was cancelled is never
// repeated, whatever the expression says.
func (e *retryExpression) allows(a Attempt) (allowed bool, err error) {
	if a.Kind != "" && a.Kind != e.kind {
		return false, fmt.Errorf("a retry expression of %s was asked about an attempt of %s: no retry", e.kind, refusal.Clip(a.Kind))
	}
	if a.Phase == "Succeeded" || a.Phase == "Cancelled" {
		return false, nil
	}
	if err := e.weigh(a.Parameters); err != nil {
		return false, err
	}
	defer func() {
		if r := recover(); r != nil { // the library recovers by itself; not in its own recovery
			allowed, err = false, e.failed(fmt.Sprint(r))
		}
	}()
	machine := vm.VM{MemoryBudget: memoryBudget}
	seen := exprScope{Task: exprTask{Phase: a.Phase, Code: a.Code, Msg: a.Msg[:min(len(a.Msg), maxVisible)], Outputs: exprOutputs{a.Parameters}}}
	result, err := machine.Run(e.program, seen)
	if err != nil {
		return false, e.failed(exprMessage(err))
	}
	switch result {
	case true, "true":
		return true, nil
	case false, "false":
		return false, nil
	}
	return false, e.failed(fmt.Sprintf("it gives %s, and must give true or false", sentence(fmt.Sprintf("%#v", result))))
}

func (e *retryExpression) failed(why string) error {
	return errors.New("the retry expression cannot be answered, so there is no retry: " + why)
}

// compiled holds the expressions in use, as each attempt asks for its own by text. A
// full cache is emptied: what is in use is back after one compilation each.
var compiled = struct {
	sync.Mutex
	expressions map[[2]string]*retryExpression
}{expressions: map[[2]string]*retryExpression{}}

const maxCompiled = 512

// compileRetry reads the expression of a task of this kind. The error is an *InvalidError.
func compileRetry(kind, source string) (*retryExpression, error) {
	key := [2]string{kind, source}
	compiled.Lock()
	e := compiled.expressions[key]
	compiled.Unlock()
	if e != nil {
		return e, nil
	}
	e, err := readRetry(kind, source)
	if err != nil {
		return nil, err
	}
	key = [2]string{strings.Clone(kind), strings.Clone(source)} // not the whole message they came in
	compiled.Lock()
	defer compiled.Unlock()
	if len(compiled.expressions) >= maxCompiled {
		clear(compiled.expressions)
	}
	compiled.expressions[key] = e
	return e, nil
}

// Verdict is what a retry expression says of an attempt, in a report's words
// (Outcome.Retry): "retry", "fail", or "fail: " and why it could not be asked.
func Verdict(kind, source string, a Attempt) string {
	retry, err := Evaluate(kind, source, a)
	switch {
	case err != nil:
		why := OneLine(err.Error())
		return "fail: " + strings.ToValidUTF8(why[:min(len(why), 900)], "")
	case retry:
		return "retry"
	}
	return "fail"
}

// OneLine is a text without line breaks.
func OneLine(s string) string {
	return strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ").Replace(s)
}
