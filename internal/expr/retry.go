package expr

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/expr-lang/expr/vm"

	"github.com/curfew-dev/curfew/refusal"
)

// Attempt is what a retry expression can read of an attempt that has ended.
type Attempt struct {
	Kind  string // of the task; empty: the expression's
	Phase string // "Failed", "Error", "Timeout"
	Code  int    // the exit code, if the handler gave one
	// Msg is the error of the attempt. An expression reads its first 4 KiB.
	Msg string
	// Parameters are outputs.parameters, as encoding/json decodes a JSON object.
	Parameters map[string]any
}

// TimedOut returns an attempt that was ended by its time limit. The sweep ends such an attempt, not
// a handler, so everything about it is known in advance.
func TimedOut(kind string) Attempt {
	return Attempt{Kind: kind, Phase: "Timeout", Code: timedOutCode, Msg: "Task exceeded deadline"}
}

// timedOutCode is not a valid exit code, since no handler returned.
const timedOutCode = -1

// CheckRetry returns an *InvalidError if an expression cannot be compiled.
func CheckRetry(kind, source string) error {
	_, err := compileRetry(kind, source)
	return err
}

// EvaluateRetry reports whether an attempt of a task of this kind is retried. If the expression cannot be
// compiled, it returns an *InvalidError. If the evaluation fails for this attempt, or the result is
// neither true nor false, it returns false and an error that says why.
func EvaluateRetry(kind, source string, a Attempt) (bool, error) {
	e, err := compileRetry(kind, source)
	if err != nil {
		return false, err
	}
	return e.allows(a)
}

// retryExpression is a checked and compiled expression. It is safe for concurrent use.
type retryExpression struct {
	kind       string
	program    *vm.Program
	parameters []string // the outputs.parameters that it reads by name
	everything bool     // it also reads all of them, or one whose name is computed
}

// exprScope has the variables of an expression. The name of a task is not among them: the rules
// check it and replace it by taskVariable.
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

// allows evaluates the expression for one attempt. An attempt that succeeded or was cancelled is
// never retried, whatever the expression is.
func (e *retryExpression) allows(a Attempt) (bool, error) {
	if a.Kind != "" && a.Kind != e.kind {
		return false, fmt.Errorf("the retry expression is of kind %s, but the attempt is of kind %s: no retry", e.kind, refusal.Clip(a.Kind))
	}
	if a.Phase == "Succeeded" || a.Phase == "Cancelled" {
		return false, nil
	}
	if err := e.weigh(a.Parameters); err != nil {
		return false, err
	}
	seen := exprScope{Task: exprTask{Phase: a.Phase, Code: a.Code, Msg: a.Msg[:min(len(a.Msg), maxVisible)], Outputs: exprOutputs{a.Parameters}}}
	result, err := run(e.program, seen)
	if err != nil {
		return false, e.failed(err.Error())
	}
	switch result {
	case true, "true":
		return true, nil
	case false, "false":
		return false, nil
	}
	return false, e.failed(fmt.Sprintf("its result is %s, but must be true or false", sentence(fmt.Sprintf("%#v", result))))
}

func (e *retryExpression) failed(why string) error {
	return errors.New("the retry expression cannot be evaluated, so there is no retry: " + why)
}

// compiled is a cache of compiled expressions, since each attempt has its expression as text. A
// full cache is emptied; expressions in use are then compiled once more.
var compiled = struct {
	sync.Mutex
	expressions map[[2]string]*retryExpression
}{expressions: map[[2]string]*retryExpression{}}

const maxCompiled = 512

// compileRetry returns the compiled expression of a task of this kind. The error is an *InvalidError.
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
	key = [2]string{strings.Clone(kind), strings.Clone(source)} // copies, so that the reply that contains them can be freed
	compiled.Lock()
	defer compiled.Unlock()
	if len(compiled.expressions) >= maxCompiled {
		clear(compiled.expressions)
	}
	compiled.expressions[key] = e
	return e, nil
}

// Verdict evaluates a retry expression for an attempt, and returns the value for Outcome.Retry:
// "retry", "fail", or "fail: " and why the expression could not be evaluated.
func Verdict(kind, source string, a Attempt) string {
	retry, err := EvaluateRetry(kind, source, a)
	switch {
	case err != nil:
		why := OneLine(err.Error())
		return "fail: " + strings.ToValidUTF8(why[:min(len(why), 900)], "")
	case retry:
		return "retry"
	}
	return "fail"
}

// OneLine returns a text with spaces in place of its line breaks.
func OneLine(s string) string {
	return strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ").Replace(s)
}
