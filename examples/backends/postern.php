<?php
/**
 * Codes by SMS and mail for a server in PHP 8.1 or newer, with PHP's own extensions alone (openssl for `read`).
 *
 * See docs/guides/your-language.md. Copy the class into your project, and try it in a terminal:
 *
 *   POSTERN_URL=http://localhost:3000 SECRET_KEY=psk_... APP=default php postern.php
 *   send sms +8613800138000 signup
 *   check sms +8613800138000 signup 1234 <id of the send>
 *   verify <pass of the check> signup sms +8613800138000
 *   read <pass of a page's check> signup
 */

declare(strict_types=1);

// #region client
/** A fault of this program, its key or its settings. Log it, and show the person a general sentence. */
final class PosternError extends RuntimeException
{
}

/** Each call returns an array with `outcome`: see the table in the guide. */
final class Postern
{
    /** The person can do something about these. `detail` is the sentence for them. */
    private const FOR_THE_PERSON = [
        'limited', 'locked', 'code_mismatch', 'code_gone', 'invalid_recipient', 'destination_not_allowed',
    ];

    /** In front of the two numbers of a P-256 key, this makes the form that openssl reads (RFC 5480). */
    private const P256 = '3059301306072a8648ce3d020106082a8648ce3d03010703420004';

    private array $keys = [];
    private int $keysReadAt = 0;

    /**
     * `$once(id, end)`: whether this is the first use of the id. Your table with a unique column, kept until `end`.
     * `$keysFile`: a file that only your program can write. It keeps the public keys between requests.
     */
    public function __construct(
        private string $url,
        private string $key,
        private string $app,
        private Closure $once,
        private ?string $keysFile = null,
    ) {
    }

    /** `$ip`: the visitor's address. `$idempotencyKey`: one per press of the button, such as a hidden field. */
    public function send(
        string $channel,
        string $to,
        string $scene,
        ?string $ip = null,
        string $language = 'en',
        ?string $idempotencyKey = null,
    ): array {
        $body = ['channel' => $channel, 'to' => $to, 'scene' => $scene, 'ip' => $ip];
        $once = ['Idempotency-Key: ' . ($idempotencyKey ?? bin2hex(random_bytes(16)))];
        return $this->call('accepted', '/v1/captchas', $body, $language, $once);
    }

    /** `$id`: of the send. With it, a check whose answer was lost can be repeated. */
    public function check(
        string $channel,
        string $to,
        string $scene,
        string $code,
        string $id,
        ?string $ip = null,
        string $language = 'en',
    ): array {
        $body = ['channel' => $channel, 'to' => $to, 'scene' => $scene, 'code' => $code, 'id' => $id, 'ip' => $ip];
        return $this->call('passed', '/v1/captchas/check', $body, $language);
    }

    /** A pass that a page has sent. Find accounts by `to` of the answer, which has one spelling per recipient. */
    public function verify(string $pass, string $scene, string $channel, string $to): array
    {
        $body = ['pass' => $pass, 'channel' => $channel, 'to' => $to];
        $answer = $this->call('valid', '/v1/passes/verify', $body);
        if ($answer['outcome'] !== 'valid' || ($answer['valid'] && $answer['scene'] === $scene)) {
            return $answer;
        }
        return self::invalid($answer['reason'] ?? 'other_scene');
    }

    /** The same without a call of Postern. `sub` of the answer is the recipient: compare it with the stored one. */
    public function read(string $pass, string $scene): array
    {
        $parts = explode('.', $pass);
        if (strlen($pass) > 2000 || count($parts) !== 3) {
            return self::invalid('invalid');
        }
        [$header, $claims, $signature] = array_map(self::bytesOf(...), $parts);
        $header = json_decode($header, true);
        if (!is_array($header) || ($header['alg'] ?? '') !== 'ES256' || !is_string($header['kid'] ?? null)) {
            return self::invalid('invalid');
        }
        $keys = $this->keys($header['kid']);
        if ($keys === null) {
            return ['outcome' => 'unavailable', 'retryAfterMs' => 1000];
        }
        $key = $keys[$header['kid']] ?? null;
        $isSigned = $key !== null && strlen($signature) === 64
            && openssl_verify("$parts[0].$parts[1]", self::derOf($signature), $key, OPENSSL_ALGO_SHA256) === 1;
        if (!$isSigned) {
            return self::invalid('invalid');
        }
        $claims = json_decode($claims, true);
        $refusal = match (true) {
            $claims['iss'] !== 'postern' || !isset($claims['jti'], $claims['scene']) => 'invalid',
            $claims['aud'] !== $this->app => 'other_app',
            $claims['exp'] <= time() => 'expired',
            $claims['scene'] !== $scene => 'other_scene',
            !($this->once)($claims['jti'], $claims['exp']) => 'used',
            default => null,
        };
        return $refusal === null ? ['outcome' => 'valid', ...$claims] : self::invalid($refusal);
    }

    private function call(string $success, string $path, array $body, string $language = 'en', array $more = []): array
    {
        $headers = [
            "Authorization: Bearer $this->key",
            'Content-Type: application/json',
            "Accept-Language: $language",
            ...$more,
        ];
        $content = json_encode(array_filter($body, fn ($value) => $value !== null), JSON_THROW_ON_ERROR);
        for ($attempt = 1; ; $attempt++) {
            [$status, $answer, $waitS] = $this->ask('POST', $path, $headers, $content);
            $code = $answer['code'] ?? null;
            // Nothing was changed, or the answer was lost. The same request with the same key sends no second message.
            if (!in_array($status, [0, 502, 503, 504], true) && $code !== 'idempotency_in_progress') {
                break;
            }
            if ($attempt === 3 || $waitS > 2) {
                return ['outcome' => 'unavailable', 'retryAfterMs' => $waitS * 1000, ...$answer];
            }
            sleep($waitS);
        }
        if ($status >= 200 && $status < 300) {
            return ['outcome' => $success, ...$answer];
        }
        $errors = $answer['errors'] ?? [];
        $others = array_filter($errors, fn ($error) => !in_array($error['path'], ['to', 'code'], true));
        $isTyped = $code === 'invalid_request' && $errors !== [] && $others === [];
        if ($isTyped) {
            $answer['detail'] = implode(' ', array_column($errors, 'message'));
        }
        if ($isTyped || in_array($code, self::FOR_THE_PERSON, true)) {
            return ['outcome' => $code, ...$answer];
        }
        throw new PosternError("Postern answers $status to $path: " . json_encode($answer));
    }

    /** The status (0: no answer), the JSON of the body, and the seconds to wait before the same request. */
    private function ask(string $method, string $path, array $headers = [], string $content = ''): array
    {
        $http = ['method' => $method, 'header' => $headers, 'content' => $content];
        $options = ['timeout' => 5, 'ignore_errors' => true, 'follow_location' => 0, 'protocol_version' => 1.1];
        $stream = @fopen($this->url . $path, 'rb', false, stream_context_create(['http' => $http + $options]));
        $text = $stream === false ? false : stream_get_contents($stream);
        if ($text === false) {
            return [0, [], 1];
        }
        $lines = stream_get_meta_data($stream)['wrapper_data'];
        $wait = preg_grep('/^retry-after: *\d+$/i', $lines);
        $waitS = $wait ? (int) preg_replace('/\D/', '', reset($wait)) : 1;
        $status = (int) explode(' ', $lines[0])[1];
        $answer = json_decode($text, true);
        if (is_array($answer)) {
            return [$status, $answer, $waitS];
        }
        // A success without its body is no answer. A proxy may answer with a page.
        return [$status < 300 ? 0 : $status, [], $waitS];
    }

    /** The public keys by `kid`. An unknown `kid` reads them again, at most every ten seconds. Null: no answer. */
    private function keys(string $kid): ?array
    {
        if ($this->keys === [] && $this->keysFile !== null && is_file($this->keysFile)) {
            [$this->keys, $this->keysReadAt] = json_decode(file_get_contents($this->keysFile), true);
        }
        if (isset($this->keys[$kid]) || $this->keysReadAt > time() - 10) {
            return $this->keys;
        }
        [$status, $answer] = $this->ask('GET', '/.well-known/jwks.json', ['Connection: close']);
        if ($status !== 200) {
            return null;
        }
        $this->keys = array_map(self::pemOf(...), array_column($answer['keys'], null, 'kid'));
        $this->keysReadAt = time();
        if ($this->keysFile !== null) {
            $unfinished = $this->keysFile . bin2hex(random_bytes(4));
            file_put_contents($unfinished, json_encode([$this->keys, $this->keysReadAt]));
            rename($unfinished, $this->keysFile);
        }
        return $this->keys;
    }

    private static function pemOf(array $jwk): string
    {
        $der = hex2bin(self::P256) . self::bytesOf($jwk['x']) . self::bytesOf($jwk['y']);
        return "-----BEGIN PUBLIC KEY-----\n" . base64_encode($der) . "\n-----END PUBLIC KEY-----\n";
    }

    /** The two numbers of a signature as openssl reads them: a SEQUENCE of two INTEGERs. */
    private static function derOf(string $signature): string
    {
        $integers = '';
        foreach (str_split($signature, 32) as $number) {
            $number = ltrim($number, "\0");
            $number = $number === '' || ord($number[0]) > 127 ? "\0$number" : $number;
            $integers .= "\x02" . chr(strlen($number)) . $number;
        }
        return "\x30" . chr(strlen($integers)) . $integers;
    }

    private static function bytesOf(string $base64url): string
    {
        return base64_decode(strtr($base64url, '-_', '+/'), true) ?: '';
    }

    private static function invalid(string $reason): array
    {
        return ['outcome' => 'invalid', 'reason' => $reason];
    }
}
// #endregion client

$used = [];
$once = function (string $id, int $end) use (&$used): bool {
    $isFirst = !isset($used[$id]);
    $used[$id] = $end;
    return $isFirst;
};
$postern = new Postern(getenv('POSTERN_URL'), getenv('SECRET_KEY'), getenv('APP') ?: 'default', $once);
// A server has both from the visitor's request.
[$ip, $language] = [null, 'en'];
$shown = ['id', 'codeLength', 'pass', 'scene', 'to', 'reason', 'triesLeft', 'lockedForMs', 'retryAfterMs', 'detail'];
while (($line = fgets(STDIN)) !== false) {
    $words = explode(' ', trim($line));
    try {
        // #region calls
        switch (array_shift($words)) {
            case 'send':
                [$channel, $to, $scene] = $words;
                $answer = $postern->send($channel, $to, $scene, $ip, $language);
                break;
            case 'check':
                [$channel, $to, $scene, $code, $id] = $words;
                $answer = $postern->check($channel, $to, $scene, $code, $id, $ip, $language);
                break;
            case 'verify':
                [$pass, $scene, $channel, $to] = $words;
                $answer = $postern->verify($pass, $scene, $channel, $to);
                break;
            case 'read':
                [$pass, $scene] = $words;
                $answer = $postern->read($pass, $scene);
                break;
            default:
                throw new PosternError("there is no such command");
        }
        // #endregion calls
        echo $answer['outcome'];
        foreach (array_intersect($shown, array_keys($answer)) as $name) {
            echo " $name=$answer[$name]";
        }
        echo "\n";
    } catch (PosternError $error) {
        echo 'error ', $error->getMessage(), "\n";
    }
}
