// Codes by SMS and mail for a server in Go 1.19 or newer, with Go's own library alone.
//
// See docs/guides/your-language.md. Copy the file without `main` into your project, and try it in a terminal:
//
//	POSTERN_URL=http://localhost:3000 SECRET_KEY=psk_... APP=default go run postern.go
//	send sms +8613800138000 signup
//	check sms +8613800138000 signup 1234 <id of the send>
//	verify <pass of the check> signup sms +8613800138000
//	read <pass of a page's check> signup
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// #region client

// Answer has `outcome` and the members of Postern's answer: see the table in the guide.
type Answer map[string]any

// Person gets a code. IP is the visitor's address, Language their Accept-Language. Both may be empty.
type Person struct{ IP, Language string }

// Postern may be used by many goroutines.
type Postern struct {
	URL, Key, App string
	// Once returns whether this is the first use of the id: your table with a unique column, kept until `end`.
	Once func(id string, end time.Time) (bool, error)

	client     http.Client
	lock       sync.Mutex
	keys       map[string]*ecdsa.PublicKey
	keysReadAt time.Time
}

// NewPostern makes a client. An error of its calls is a fault of this program, its key or its settings.
func NewPostern(url, key, app string, once func(string, time.Time) (bool, error)) *Postern {
	return &Postern{URL: url, Key: key, App: app, Once: once, client: http.Client{Timeout: 5 * time.Second}}
}

// Send sends a code. `idempotencyKey`: one per press of the button, such as a hidden field; "" makes one.
func (p *Postern) Send(
	c context.Context, channel, to, scene string, person Person, idempotencyKey string,
) (Answer, error) {
	if idempotencyKey == "" {
		random := make([]byte, 16)
		if _, err := rand.Read(random); err != nil {
			return nil, err
		}
		idempotencyKey = hex.EncodeToString(random)
	}
	body := map[string]string{"channel": channel, "to": to, "scene": scene, "ip": person.IP}
	return p.call(c, "accepted", "/v1/captchas", body, person.Language, idempotencyKey)
}

// Check checks a code. With the `id` of the send, a check whose answer was lost can be repeated.
func (p *Postern) Check(c context.Context, channel, to, scene, code, id string, person Person) (Answer, error) {
	body := map[string]string{"channel": channel, "to": to, "scene": scene, "code": code, "id": id, "ip": person.IP}
	return p.call(c, "passed", "/v1/captchas/check", body, person.Language, "")
}

// Verify asks Postern about a pass of a page. Find accounts by `to` of the answer: it has one spelling per recipient.
func (p *Postern) Verify(c context.Context, pass, scene, channel, to string) (Answer, error) {
	body := map[string]string{"pass": pass, "channel": channel, "to": to}
	answer, err := p.call(c, "valid", "/v1/passes/verify", body, "", "")
	if err != nil || answer["outcome"] != "valid" || (answer["valid"] == true && answer["scene"] == scene) {
		return answer, err
	}
	if reason, found := answer["reason"].(string); found {
		return invalid(reason), nil
	}
	return invalid("other_scene"), nil
}

// Read does the same without a call of Postern. `sub` of the answer is the recipient: compare it with the stored one.
func (p *Postern) Read(c context.Context, pass, scene string) (Answer, error) {
	parts := strings.Split(pass, ".")
	if len(pass) > 2000 || len(parts) != 3 {
		return invalid("invalid"), nil
	}
	var header struct{ Alg, Kid string }
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || len(signature) != 64 || decode(parts[0], &header) != nil || header.Alg != "ES256" {
		return invalid("invalid"), nil
	}
	key, err := p.key(c, header.Kid)
	if err != nil {
		return Answer{"outcome": "unavailable", "retryAfterMs": 1000.0}, nil
	}
	hash := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	r, s := new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])
	if key == nil || !ecdsa.Verify(key, hash[:], r, s) {
		return invalid("invalid"), nil
	}
	var claims struct {
		Iss, Aud, Scene, Channel, Sub, Jti string
		Exp                                int64
	}
	end := func() time.Time { return time.Unix(claims.Exp, 0) }
	switch {
	case decode(parts[1], &claims) != nil || claims.Iss != "postern" || claims.Jti == "" || claims.Scene == "":
		return invalid("invalid"), nil
	case claims.Aud != p.App:
		return invalid("other_app"), nil
	case !time.Now().Before(end()):
		return invalid("expired"), nil
	case claims.Scene != scene:
		return invalid("other_scene"), nil
	}
	if isFirst, err := p.Once(claims.Jti, end()); err != nil || !isFirst {
		return invalid("used"), err
	}
	return Answer{"outcome": "valid", "scene": scene, "channel": claims.Channel, "sub": claims.Sub}, nil
}

var forThePerson = map[string]bool{
	"limited": true, "locked": true, "code_mismatch": true, "code_gone": true,
	"invalid_recipient": true, "destination_not_allowed": true,
}

func (p *Postern) call(
	c context.Context, success, path string, body map[string]string, language, idempotencyKey string,
) (Answer, error) {
	for name, value := range body {
		if value == "" && name == "ip" {
			delete(body, name)
		}
	}
	if language == "" {
		language = "en"
	}
	content, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	status, answer, wait := 0, Answer(nil), time.Duration(0)
	for attempt := 1; ; attempt++ {
		request, err := http.NewRequestWithContext(c, "POST", p.URL+path, bytes.NewReader(content))
		if err != nil {
			return nil, err
		}
		request.Header.Set("Authorization", "Bearer "+p.Key)
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Accept-Language", language)
		if idempotencyKey != "" {
			request.Header.Set("Idempotency-Key", idempotencyKey)
		}
		status, answer, wait = p.ask(request)
		// Nothing was changed, or the answer was lost. The same request with the same key sends no second message.
		again := status == 0 || status >= 502 && status <= 504 || answer["code"] == "idempotency_in_progress"
		if !again {
			break
		}
		if attempt == 3 || wait > 2*time.Second {
			answer["outcome"], answer["retryAfterMs"] = "unavailable", float64(wait.Milliseconds())
			return answer, c.Err()
		}
		select {
		case <-time.After(wait):
		case <-c.Done():
			return nil, c.Err()
		}
	}
	if status < 300 {
		answer["outcome"] = success
		return answer, nil
	}
	code, _ := answer["code"].(string)
	typed := typedErrors(answer)
	if code == "invalid_request" && typed != "" {
		answer["detail"] = typed
	} else if !forThePerson[code] {
		return nil, fmt.Errorf("postern answers %d to %s: %v", status, path, answer)
	}
	answer["outcome"] = code
	return answer, nil
}

// The sentences about fields that a person has typed. Empty if another field is wrong too.
func typedErrors(answer Answer) string {
	var sentences []string
	errors, _ := answer["errors"].([]any)
	for _, one := range errors {
		field, _ := one.(map[string]any)
		if field["path"] != "to" && field["path"] != "code" {
			return ""
		}
		sentences = append(sentences, fmt.Sprint(field["message"]))
	}
	return strings.Join(sentences, " ")
}

// The status (0: no answer), the JSON of the body, and the time to wait before the same request.
func (p *Postern) ask(request *http.Request) (int, Answer, time.Duration) {
	response, err := p.client.Do(request)
	if err != nil {
		return 0, Answer{}, time.Second
	}
	defer response.Body.Close()
	wait := time.Second
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil {
		wait = time.Duration(seconds) * time.Second
	}
	answer, text := Answer{}, []byte(nil)
	if text, err = io.ReadAll(io.LimitReader(response.Body, 1<<20)); err == nil {
		err = json.Unmarshal(text, &answer)
	}
	if err == nil && answer != nil {
		return response.StatusCode, answer, wait
	}
	// A success without its body is no answer. A proxy may answer with a page.
	if response.StatusCode < 300 {
		return 0, Answer{}, wait
	}
	return response.StatusCode, Answer{}, wait
}

// The public key with this id. An unknown id reads the keys again, at most every ten seconds.
func (p *Postern) key(c context.Context, kid string) (*ecdsa.PublicKey, error) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if key := p.keys[kid]; key != nil || time.Since(p.keysReadAt) < 10*time.Second {
		return key, nil
	}
	request, err := http.NewRequestWithContext(c, "GET", p.URL+"/.well-known/jwks.json", nil)
	if err != nil {
		return nil, err
	}
	response, err := p.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var read struct{ Keys []struct{ Kid, X, Y string } }
	if err := json.NewDecoder(response.Body).Decode(&read); err != nil || response.StatusCode != 200 {
		return nil, fmt.Errorf("no keys: status %d, %v", response.StatusCode, err)
	}
	p.keys, p.keysReadAt = map[string]*ecdsa.PublicKey{}, time.Now()
	for _, jwk := range read.Keys {
		p.keys[jwk.Kid] = &ecdsa.PublicKey{Curve: elliptic.P256(), X: number(jwk.X), Y: number(jwk.Y)}
	}
	return p.keys[kid], nil
}

func number(base64url string) *big.Int {
	bytes, _ := base64.RawURLEncoding.DecodeString(base64url)
	return new(big.Int).SetBytes(bytes)
}

func decode(part string, into any) error {
	text, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

func invalid(reason string) Answer { return Answer{"outcome": "invalid", "reason": reason} }

// #endregion client

func main() {
	used := map[string]bool{}
	once := func(id string, _ time.Time) (bool, error) {
		isFirst := !used[id]
		used[id] = true
		return isFirst, nil
	}
	app := os.Getenv("APP")
	if app == "" {
		app = "default"
	}
	postern := NewPostern(os.Getenv("POSTERN_URL"), os.Getenv("SECRET_KEY"), app, once)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		words := strings.Fields(lines.Text())
		answer, err := answerTo(context.Background(), postern, words[0], words[1:])
		if err != nil {
			fmt.Println("error", err)
			continue
		}
		fmt.Print(answer["outcome"])
		for _, name := range shown {
			if value, found := answer[name]; found {
				if milliseconds, isNumber := value.(float64); isNumber {
					value = int64(milliseconds)
				}
				fmt.Printf(" %s=%v", name, value)
			}
		}
		fmt.Println()
	}
}

var shown = strings.Fields("id codeLength pass scene to reason triesLeft lockedForMs retryAfterMs detail")

func answerTo(c context.Context, postern *Postern, command string, words []string) (Answer, error) {
	// A server has both from the visitor's request.
	visitor := Person{IP: "", Language: "en"}
	// #region calls
	switch command {
	case "send":
		channel, to, scene := words[0], words[1], words[2]
		return postern.Send(c, channel, to, scene, visitor, "")
	case "check":
		channel, to, scene, code, id := words[0], words[1], words[2], words[3], words[4]
		return postern.Check(c, channel, to, scene, code, id, visitor)
	case "verify":
		pass, scene, channel, to := words[0], words[1], words[2], words[3]
		return postern.Verify(c, pass, scene, channel, to)
	case "read":
		pass, scene := words[0], words[1]
		return postern.Read(c, pass, scene)
	}
	// #endregion calls
	return nil, fmt.Errorf("there is no command %q", command)
}
