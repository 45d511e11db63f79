// Package luacount counts the work of the Lua in a call exactly: the instructions of Lua's virtual machine, the calls of
// C functions, and the bytes of the strings that those read and make. The counts do not depend on the machine or its load.
//
// A [Counter] runs each FCALL of its Redis client in a process of lua5.1, which has the virtual machine of Redis's Lua, and
// passes the commands of the script to the server. So the state changes and the client gets its reply as usual. The scripts
// read the time from the Counter, because other digits could change the counts.
package luacount

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed harness.lua
var harness string

// Start is the time of a new Counter. It is far in the future, so that the server does not remove keys whose time has come.
var Start = time.UnixMilli(4_102_444_800_000)

// Interpreter is the program that runs the Lua.
const Interpreter = "lua5.1"

// Counter runs functions of a library, one at a time, and counts their work.
type Counter struct {
	// Redis is the client whose calls are counted.
	Redis *redis.Client

	mu      sync.Mutex
	process *exec.Cmd
	in      *os.File
	out     *os.File
	answers *bufio.Reader
	now     time.Time
	cost    Cost // nil: calls are not counted
}

// New starts a Counter for a library, a text for FUNCTION LOAD, on the server at addr. Close ends it.
func New(text, addr string) (*Counter, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	socket, err := conn.(*net.TCPConn).File()
	if err != nil {
		return nil, err
	}
	defer socket.Close()
	requests, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer requests.Close()
	out, answers, err := os.Pipe()
	if err != nil {
		in.Close()
		return nil, err
	}
	defer answers.Close()

	c := &Counter{process: exec.Command(Interpreter, "-e", harness), in: in, out: out, answers: bufio.NewReader(out)}
	c.process.Env = []string{} // LUA_INIT would run first
	c.process.Stdin, c.process.Stdout, c.process.Stderr = socket, socket, os.Stderr
	c.process.ExtraFiles = []*os.File{requests, answers}
	if err := c.process.Start(); err != nil {
		in.Close()
		out.Close()
		return nil, err
	}
	if _, err = c.ask("load", text); err == nil {
		err = c.SetTime(Start)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	// A call that is repeated because it takes long would be counted twice, so nothing has a time limit.
	c.Redis = redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: -1, WriteTimeout: -1, ContextTimeoutEnabled: true, MaxRetries: -1})
	c.Redis.AddHook(hook{c})
	return c, nil
}

// Close ends the process and closes the client.
func (c *Counter) Close() error {
	if c.Redis != nil {
		c.Redis.Close()
	}
	c.in.Close()
	err := c.process.Wait()
	c.out.Close()
	return err
}

// SetTime sets the clock of the scripts.
func (c *Counter) SetTime(now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
	_, err := c.ask("time", strconv.FormatInt(now.UnixMilli(), 10))
	return err
}

// Advance moves the clock of the scripts.
func (c *Counter) Advance(d time.Duration) error { return c.SetTime(c.now.Add(d)) }

// Count returns the cost of the calls that do makes.
func (c *Counter) Count(do func()) Cost {
	cost := Cost{}
	c.set(cost)
	defer c.set(nil)
	do()
	return cost
}

func (c *Counter) set(cost Cost) {
	c.mu.Lock()
	c.cost = cost
	c.mu.Unlock()
}

// call runs a function, and counts if Count asks for it. It returns the reply as an expression in Lua.
func (c *Counter) call(words []string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	request := "run"
	if c.cost != nil {
		request = "count"
	}
	answer, err := c.ask(append([]string{request}, words...)...)
	if err != nil {
		return "", err
	}
	return answer[0], c.cost.add(answer[1:])
}

// ask sends a request to the process and returns its answer, which is described in harness.lua.
func (c *Counter) ask(words ...string) ([]string, error) {
	var request strings.Builder
	fmt.Fprintln(&request, len(words))
	for _, word := range words {
		fmt.Fprintf(&request, "%d\n%s", len(word), word)
	}
	if _, err := io.WriteString(c.in, request.String()); err != nil {
		return nil, err
	}
	answer, err := c.read()
	switch {
	case err != nil:
		return nil, fmt.Errorf("the answer of %s: %w", Interpreter, err)
	case answer[0] != "OK":
		return nil, fmt.Errorf("%s: %s", Interpreter, strings.Join(answer[1:], " "))
	}
	return answer[1:], nil
}

func (c *Counter) read() ([]string, error) {
	n, err := c.number()
	words := make([]string, n)
	for i := 0; i < n && err == nil; i++ {
		var length int
		if length, err = c.number(); err == nil {
			word := make([]byte, length)
			_, err = io.ReadFull(c.answers, word)
			words[i] = string(word)
		}
	}
	if err == nil && n == 0 {
		err = errors.New("it is empty")
	}
	return words, err
}

func (c *Counter) number() (int, error) {
	line, err := c.answers.ReadString('\n')
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(line))
}

// hook makes a client's calls run in the process of a Counter.
type hook struct{ *Counter }

func (hook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessPipelineHook changes nothing: Curfew sends no call in a pipeline.
func (hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// ProcessHook runs an FCALL in the process. The server gets a script in its place that returns the reply, so that Redis
// itself turns the Lua value into a reply.
func (h hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() != "fcall" {
			return next(ctx, cmd)
		}
		args := cmd.Args()
		var words []string
		for _, arg := range args[1:] {
			word, err := text(arg)
			if err != nil {
				return err
			}
			words = append(words, word)
		}
		reply, err := h.call(words)
		if err != nil {
			cmd.SetErr(err)
			return err
		}
		args[0], args[1] = "eval", "return "+reply
		return next(context.WithoutCancel(ctx), cmd)
	}
}

// text returns an argument as go-redis sends it.
func text(arg any) (string, error) {
	switch arg := arg.(type) {
	case string:
		return arg, nil
	case []byte:
		return string(arg), nil
	case int, int64:
		return fmt.Sprint(arg), nil
	}
	return "", fmt.Errorf("luacount: an argument of a call is a %T", arg)
}

// Place is a line of the library, or a C function that the line calls.
type Place struct {
	First, Line int    // of the function, and the line itself; 0 for a call by a C function
	C           string // the C function: "string.gsub", "redis.call"; "" for the line itself
}

// Work is an amount of work. Bytes is the length of the strings that a C function is given and that it returns. Only those
// of functions that read or make strings count.
type Work struct{ Instructions, Calls, Bytes int }

// Plus returns the sum of two amounts.
func (w Work) Plus(o Work) Work {
	return Work{w.Instructions + o.Instructions, w.Calls + o.Calls, w.Bytes + o.Bytes}
}

// Cost is the work of one or several calls by its places.
type Cost map[Place]Work

// add adds the places of an answer.
func (c Cost) add(words []string) error {
	for group := range slices.Chunk(words, 6) {
		var n [6]int
		for i, word := range group {
			var err error
			if n[i], err = strconv.Atoi(word); err != nil && i != 2 { // word 2 is a name
				return err
			}
		}
		at := Place{n[0], n[1], group[2]}
		c[at] = c[at].Plus(Work{n[3], n[4], n[5]})
	}
	return nil
}

// Total returns the sum of all places, and the number of Redis commands among its calls.
func (c Cost) Total() (sum Work, commands int) {
	for at, work := range c {
		sum = sum.Plus(work)
		if at.C == "redis.call" || at.C == "redis.pcall" {
			commands += work.Calls
		}
	}
	return sum, commands
}
