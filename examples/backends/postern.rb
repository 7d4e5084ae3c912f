# Codes by SMS and mail for a server in Ruby 2.7 or newer, with Ruby's own library alone.
#
# See docs/guides/your-language.md. Copy the class into your project, and try it in a terminal:
#
#   POSTERN_URL=http://localhost:3000 SECRET_KEY=psk_... APP=default ruby postern.rb
#   send sms +8613800138000 signup
#   check sms +8613800138000 signup 1234 <id of the send>
#   verify <pass of the check> signup sms +8613800138000
#   read <pass of a page's check> signup
require "json"
require "net/http"
require "openssl"
require "securerandom"

# Each call returns a hash with "outcome": see the table in the guide. It may be used by many threads.
class Postern
  # A fault of this program, its key or its settings. Log it, and show the person a general sentence.
  class Error < StandardError; end

  # The person can do something about these. "detail" is the sentence for them.
  FOR_THE_PERSON = %w[
    limited locked code_mismatch code_gone invalid_recipient destination_not_allowed
  ].freeze

  NO_ANSWER = [
    SystemCallError, SocketError, IOError, Timeout::Error, OpenSSL::SSL::SSLError, Net::HTTPBadResponse
  ].freeze

  # `once`: called with an id and its end, returns whether this is the first use of the id. Your table with a unique
  # column, which keeps ids until then.
  def initialize(url, key, app, once)
    @url, @key, @app, @once = url, key, app, once
    @keys, @keys_read_at, @keys_lock = {}, -10, Mutex.new
  end

  # `ip`: the visitor's address. `idempotency_key`: one per press of the button, such as a hidden field.
  def send_code(channel, to, scene, ip: nil, language: "en", idempotency_key: SecureRandom.uuid)
    body = { channel: channel, to: to, scene: scene, ip: ip }
    call("accepted", "/v1/captchas", body, language, { "Idempotency-Key" => idempotency_key })
  end

  # `id`: of the send. With it, a check whose answer was lost can be repeated.
  def check(channel, to, scene, code, id, ip: nil, language: "en")
    body = { channel: channel, to: to, scene: scene, code: code, id: id, ip: ip }
    call("passed", "/v1/captchas/check", body, language)
  end

  # A pass that a page has sent. Find accounts by "to" of the answer, which has one spelling per recipient.
  def verify(pass, scene, channel, to)
    answer = call("valid", "/v1/passes/verify", { pass: pass, channel: channel, to: to })
    return answer if answer["outcome"] != "valid" || (answer["valid"] && answer["scene"] == scene)

    invalid(answer.fetch("reason", "other_scene"))
  end

  # The same without a call of Postern. "sub" of the answer is the recipient: compare it with the stored one.
  def read(pass, scene)
    parts = pass.split(".", -1)
    return invalid("invalid") if pass.length > 2000 || parts.length != 3

    header, claims, signature = parts.map { |part| bytes_of(part) }
    header = JSON.parse(header)
    return invalid("invalid") unless header.is_a?(Hash) && header["alg"] == "ES256"

    key = key_of(header["kid"])
    signed = key && signature.bytesize == 64 && key.verify("SHA256", der_of(signature), parts.first(2).join("."))
    return invalid("invalid") unless signed

    claims = JSON.parse(claims)
    refusal = refusal_of(claims, scene)
    refusal ? invalid(refusal) : { "outcome" => "valid", **claims }
  rescue ArgumentError, JSON::ParserError, OpenSSL::PKey::PKeyError
    invalid("invalid")
  rescue *NO_ANSWER
    { "outcome" => "unavailable", "retryAfterMs" => 1000 }
  end

  private

  def refusal_of(claims, scene)
    return "invalid" unless claims["iss"] == "postern" && claims["jti"] && claims["scene"]
    return "other_app" unless claims["aud"] == @app
    return "expired" unless claims["exp"] > Time.now.to_i
    return "other_scene" unless claims["scene"] == scene

    "used" unless @once.call(claims["jti"], claims["exp"])
  end

  def call(success, path, body, language = "en", more = {})
    headers = {
      "Authorization" => "Bearer #{@key}",
      "Content-Type" => "application/json",
      "Accept-Language" => language,
      **more
    }
    status, answer = ask_up_to_three_times(path, headers, body.compact.to_json)
    return { "outcome" => "unavailable", **answer } if status.nil?
    return { "outcome" => success, **answer } if status < 300

    code, errors = answer["code"], answer["errors"] || []
    typed = code == "invalid_request" && errors.any? && errors.all? { |error| %w[to code].include?(error["path"]) }
    answer["detail"] = errors.map { |error| error["message"] }.join(" ") if typed
    return { "outcome" => code, **answer } if typed || FOR_THE_PERSON.include?(code)

    raise Error, "Postern answers #{status} to #{path}: #{answer.to_json}"
  end

  # The status and the JSON of the answer. The status is nil if Postern cannot answer now.
  def ask_up_to_three_times(path, headers, content)
    (1..3).each do |attempt|
      status, answer, wait_s = ask(Net::HTTP::Post, path, headers, content)
      # Nothing was changed, or the answer was lost. The same request with the same key sends no second message.
      again = [nil, 502, 503, 504].include?(status) || answer["code"] == "idempotency_in_progress"
      return [status, answer] unless again
      return [nil, { "retryAfterMs" => wait_s * 1000, **answer }] if attempt == 3 || wait_s > 2

      sleep wait_s
    end
  end

  # The status (nil: no answer), the JSON of the body, and the seconds to wait before the same request.
  def ask(kind, path, headers = {}, content = nil)
    uri = URI(@url + path)
    options = { use_ssl: uri.scheme == "https", open_timeout: 5, read_timeout: 5, max_retries: 0 }
    response = Net::HTTP.start(uri.host, uri.port, **options) { |http| http.request(kind.new(uri, headers), content) }
    wait_s = response["Retry-After"].to_s[/\A\d+\z/] || 1
    status, answer = response.code.to_i, json_of(response.body)
    # A success without its body is no answer. A proxy may answer with a page.
    [answer || status >= 300 ? status : nil, answer || {}, wait_s.to_i]
  rescue *NO_ANSWER
    [nil, {}, 1]
  end

  def json_of(text)
    answer = JSON.parse(text.to_s)
    answer if answer.is_a?(Hash)
  rescue JSON::ParserError
    nil
  end

  # The public key with this id. An unknown id reads the keys again, at most every ten seconds.
  def key_of(kid)
    @keys_lock.synchronize do
      now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      if !@keys.key?(kid) && now - @keys_read_at >= 10
        status, answer = ask(Net::HTTP::Get, "/.well-known/jwks.json")
        raise IOError, "no keys" unless status == 200

        @keys = answer["keys"].to_h { |jwk| [jwk["kid"], public_key(jwk)] }
        @keys_read_at = now
      end
      @keys[kid]
    end
  end

  def public_key(jwk)
    algorithm = OpenSSL::ASN1::Sequence(%w[id-ecPublicKey prime256v1].map { |name| OpenSSL::ASN1::ObjectId(name) })
    point = OpenSSL::ASN1::BitString("\x04".b + bytes_of(jwk["x"]) + bytes_of(jwk["y"]))
    OpenSSL::PKey.read(OpenSSL::ASN1::Sequence([algorithm, point]).to_der)
  end

  # The two numbers of a signature as openssl reads them.
  def der_of(signature)
    numbers = [signature[0, 32], signature[32, 32]].map { |bytes| OpenSSL::BN.new(bytes, 2) }
    OpenSSL::ASN1::Sequence(numbers.map { |number| OpenSSL::ASN1::Integer(number) }).to_der
  end

  def bytes_of(base64url)
    (base64url.tr("-_", "+/") + "=" * (-base64url.length % 4)).unpack1("m0")
  end

  def invalid(reason)
    { "outcome" => "invalid", "reason" => reason }
  end
end

if $PROGRAM_NAME == __FILE__
  used = {}
  once = ->(id, ends_at) { !used.key?(id) && used[id] = ends_at }
  postern = Postern.new(ENV.fetch("POSTERN_URL"), ENV.fetch("SECRET_KEY"), ENV.fetch("APP", "default"), once)
  # A server has both from the visitor's request.
  ip, language = nil, "en"
  shown = %w[id codeLength pass scene to reason triesLeft lockedForMs retryAfterMs detail]
  $stdout.sync = true
  $stdin.each_line do |line|
    command, *words = line.split
    answer =
      # #region calls
      case command
      when "send"
        channel, to, scene = words
        postern.send_code(channel, to, scene, ip: ip, language: language)
      when "check"
        channel, to, scene, code, id = words
        postern.check(channel, to, scene, code, id, ip: ip, language: language)
      when "verify"
        pass, scene, channel, to = words
        postern.verify(pass, scene, channel, to)
      when "read"
        pass, scene = words
        postern.read(pass, scene)
      end
    # #endregion calls
    raise Postern::Error, "there is no command #{command}" if answer.nil?

    puts [answer["outcome"], *(shown & answer.keys).map { |name| "#{name}=#{answer[name]}" }].join(" ")
  rescue Postern::Error => error
    puts "error #{error.message}"
  end
end
