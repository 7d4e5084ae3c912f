import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.math.BigInteger;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.security.AlgorithmParameters;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PublicKey;
import java.security.Signature;
import java.security.spec.ECGenParameterSpec;
import java.security.spec.ECParameterSpec;
import java.security.spec.ECPoint;
import java.security.spec.ECPublicKeySpec;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;

/**
 * Codes by SMS and mail for a server in Java 17 or newer, with Java's own library alone. It also works in Spring Boot:
 * declare one as a bean. See docs/guides/your-language.md. Copy the class into your project, and try it in a terminal:
 *
 * <pre>
 * POSTERN_URL=http://localhost:3000 SECRET_KEY=psk_... APP=default java Postern.java
 * send sms +8613800138000 signup
 * check sms +8613800138000 signup 1234 (id of the send)
 * verify (pass of the check) signup sms +8613800138000
 * read (pass of a page's check) signup
 * </pre>
 *
 * Many threads may use one object.
 */
public final class Postern {
  /** `outcome`: see the table in the guide. `members`: those of Postern's answer. */
  public record Answer(String outcome, Map<String, Object> members) {
    public Object get(String name) {
      return members.get(name);
    }
  }

  /** The person for whom a code is sent. `ip`: the visitor's address, or null. `language`: their Accept-Language. */
  public record Person(String ip, String language) {}

  /** A table with a unique column, which keeps each id until `end`. */
  public interface Once {
    /** Whether this is the first use of the id. */
    boolean isFirstUse(String id, Instant end);
  }

  /** A fault of this program, its key or its settings. Log it, and show the person a general sentence. */
  public static final class PosternException extends RuntimeException {
    private static final long serialVersionUID = 1;

    PosternException(String message) {
      super(message);
    }
  }

  /** The person can do something about these. `detail` is the sentence for them. */
  private static final Set<String> FOR_THE_PERSON =
      Set.of("limited", "locked", "code_mismatch", "code_gone", "invalid_recipient", "destination_not_allowed");

  private static final Set<Integer> NO_ANSWER = Set.of(0, 502, 503, 504);
  private static final Duration PATIENCE = Duration.ofSeconds(5);

  private final HttpClient http =
      HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).connectTimeout(PATIENCE).build();
  private final String url;
  private final String key;
  private final String app;
  private final Once once;
  private Map<String, PublicKey> keys = Map.of();
  private Instant keysReadAt = Instant.MIN;

  public Postern(String url, String key, String app, Once once) {
    this.url = url;
    this.key = key;
    this.app = app;
    this.once = once;
  }

  /** `idempotencyKey`: one per press of the button, such as a hidden field. Null makes one. */
  public Answer send(String channel, String to, String scene, Person person, String idempotencyKey) {
    Map<String, String> body = fields("channel", channel, "to", to, "scene", scene, "ip", person.ip);
    String once = idempotencyKey == null ? UUID.randomUUID().toString() : idempotencyKey;
    return call("accepted", "/v1/captchas", body, person.language, "Idempotency-Key", once);
  }

  /** `id`: of the send. With it, a check whose answer was lost can be repeated. */
  public Answer check(String channel, String to, String scene, String code, String id, Person person) {
    Map<String, String> body =
        fields("channel", channel, "to", to, "scene", scene, "code", code, "id", id, "ip", person.ip);
    return call("passed", "/v1/captchas/check", body, person.language);
  }

  /** A pass that a page has sent. Find accounts by `to` of the answer, which has one spelling per recipient. */
  public Answer verify(String pass, String scene, String channel, String to) {
    Map<String, String> body = fields("pass", pass, "channel", channel, "to", to);
    Answer answer = call("valid", "/v1/passes/verify", body, "en");
    boolean isValid = Boolean.TRUE.equals(answer.get("valid")) && scene.equals(answer.get("scene"));
    if (!answer.outcome.equals("valid") || isValid) return answer;
    Object reason = answer.get("reason");
    return invalid(reason == null ? "other_scene" : reason.toString());
  }

  /** The same without a call of Postern. `sub` of the answer is the recipient: compare it with the stored one. */
  public Answer read(String pass, String scene) {
    String[] parts = pass.split("\\.", -1);
    if (pass.length() > 2_000 || parts.length != 3) return invalid("invalid");
    try {
      Map<String, Object> header = Json.read(textOf(parts[0]));
      if (!"ES256".equals(header.get("alg"))) return invalid("invalid");
      PublicKey publicKey = keyOf(header.get("kid"));
      if (publicKey == null) return invalid("invalid");
      Signature signature = Signature.getInstance("SHA256withECDSAinP1363Format");
      signature.initVerify(publicKey);
      signature.update((parts[0] + "." + parts[1]).getBytes(StandardCharsets.US_ASCII));
      if (!signature.verify(Base64.getUrlDecoder().decode(parts[2]))) return invalid("invalid");
      Map<String, Object> claims = Json.read(textOf(parts[1]));
      String refusal = refusalOf(claims, scene);
      return refusal == null ? new Answer("valid", claims) : invalid(refusal);
    } catch (IllegalArgumentException | GeneralSecurityException error) {
      return invalid("invalid");
    } catch (IOException error) {
      return new Answer("unavailable", Map.of("retryAfterMs", 1_000L));
    }
  }

  private String refusalOf(Map<String, Object> claims, String scene) {
    if (!"postern".equals(claims.get("iss"))) return "invalid";
    if (!(claims.get("jti") instanceof String id && claims.get("exp") instanceof Long exp)) return "invalid";
    if (claims.get("scene") == null) return "invalid";
    if (!app.equals(claims.get("aud"))) return "other_app";
    Instant end = Instant.ofEpochSecond(exp);
    if (!Instant.now().isBefore(end)) return "expired";
    if (!scene.equals(claims.get("scene"))) return "other_scene";
    return once.isFirstUse(id, end) ? null : "used";
  }

  private Answer call(String success, String path, Map<String, String> body, String language, String... more) {
    HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(url + path)).timeout(PATIENCE);
    request.header("Authorization", "Bearer " + key).header("Content-Type", "application/json");
    request.header("Accept-Language", language);
    if (more.length > 0) request.headers(more);
    request.POST(HttpRequest.BodyPublishers.ofString(Json.write(body)));
    Reply reply = ask(request.build());
    // Nothing was changed, or the answer was lost. The same request with the same key sends no second message.
    for (int attempt = 1; reply.isForLater(); attempt++, reply = ask(request.build())) {
      if (attempt == 3 || reply.waitS > 2) {
        reply.members.put("retryAfterMs", reply.waitS * 1_000);
        return new Answer("unavailable", reply.members);
      }
      sleep(reply.waitS);
    }
    if (reply.status < 300) return new Answer(success, reply.members);
    String typed = reply.typedErrors();
    if (typed != null) reply.members.put("detail", typed);
    if (typed == null && !FOR_THE_PERSON.contains(reply.code()))
      throw new PosternException("Postern answers " + reply.status + " to " + path + ": " + reply.members);
    return new Answer(reply.code(), reply.members);
  }

  /** `status`: 0 if there was no answer. `waitS`: the seconds to wait before the same request. */
  private record Reply(int status, Map<String, Object> members, long waitS) {
    String code() {
      return String.valueOf(members.get("code"));
    }

    boolean isForLater() {
      return NO_ANSWER.contains(status) || code().equals("idempotency_in_progress");
    }

    /** The sentences about fields that a person has typed. Null if there are none, or another field is wrong too. */
    String typedErrors() {
      if (!code().equals("invalid_request") || !(members.get("errors") instanceof List<?> errors)) return null;
      List<String> sentences = new ArrayList<>();
      for (Object one : errors) {
        Map<?, ?> field = (Map<?, ?>) one;
        if (!List.of("to", "code").contains(field.get("path"))) return null;
        sentences.add(String.valueOf(field.get("message")));
      }
      return sentences.isEmpty() ? null : String.join(" ", sentences);
    }
  }

  private Reply ask(HttpRequest request) {
    try {
      HttpResponse<String> response = http.send(request, HttpResponse.BodyHandlers.ofString());
      String waitS = response.headers().firstValue("Retry-After").filter(text -> text.matches("\\d{1,9}")).orElse("1");
      Map<String, Object> members = new LinkedHashMap<>();
      int status = response.statusCode();
      try {
        members.putAll(Json.read(response.body()));
      } catch (IllegalArgumentException error) {
        // A success without its body is no answer. A proxy may answer with a page.
        if (status < 300) status = 0;
      }
      return new Reply(status, members, Long.parseLong(waitS));
    } catch (IOException error) {
      return new Reply(0, new LinkedHashMap<>(), 1);
    } catch (InterruptedException error) {
      throw interrupted();
    }
  }

  private static void sleep(long seconds) {
    try {
      Thread.sleep(seconds * 1_000);
    } catch (InterruptedException error) {
      throw interrupted();
    }
  }

  private static PosternException interrupted() {
    Thread.currentThread().interrupt();
    return new PosternException("interrupted");
  }

  /** The public key with this id. An unknown id reads the keys again, at most every ten seconds. */
  private synchronized PublicKey keyOf(Object kid) throws IOException, GeneralSecurityException {
    Instant now = Instant.now();
    if (keys.get(String.valueOf(kid)) == null && now.minusSeconds(10).isAfter(keysReadAt)) {
      Reply reply = ask(HttpRequest.newBuilder(URI.create(url + "/.well-known/jwks.json")).timeout(PATIENCE).build());
      if (reply.status != 200) throw new IOException("no keys");
      Map<String, PublicKey> read = new HashMap<>();
      for (Object one : (List<?>) reply.members.get("keys")) {
        Map<?, ?> jwk = (Map<?, ?>) one;
        read.put(String.valueOf(jwk.get("kid")), publicKeyOf(jwk));
      }
      keys = read;
      keysReadAt = now;
    }
    return keys.get(String.valueOf(kid));
  }

  private static PublicKey publicKeyOf(Map<?, ?> jwk) throws GeneralSecurityException {
    AlgorithmParameters curve = AlgorithmParameters.getInstance("EC");
    curve.init(new ECGenParameterSpec("secp256r1"));
    ECPoint point = new ECPoint(numberOf(jwk.get("x")), numberOf(jwk.get("y")));
    ECPublicKeySpec spec = new ECPublicKeySpec(point, curve.getParameterSpec(ECParameterSpec.class));
    return KeyFactory.getInstance("EC").generatePublic(spec);
  }

  private static BigInteger numberOf(Object base64url) {
    return new BigInteger(1, Base64.getUrlDecoder().decode(base64url.toString()));
  }

  private static String textOf(String base64url) {
    return new String(Base64.getUrlDecoder().decode(base64url), StandardCharsets.UTF_8);
  }

  private static Answer invalid(String reason) {
    return new Answer("invalid", Map.of("reason", reason));
  }

  /** Names and values. A value that is null is left out. */
  private static Map<String, String> fields(String... namesAndValues) {
    Map<String, String> fields = new LinkedHashMap<>();
    for (int at = 0; at < namesAndValues.length; at += 2) {
      if (namesAndValues[at + 1] != null) fields.put(namesAndValues[at], namesAndValues[at + 1]);
    }
    return fields;
  }

  /** Java's library has no JSON. With Jackson, `ObjectMapper` does the same. */
  private static final class Json {
    private final String text;
    private int at = 0;

    private Json(String text) {
      this.text = text;
    }

    static String write(Map<String, String> fields) {
      List<String> members = new ArrayList<>();
      fields.forEach((name, value) -> members.add(quoted(name) + ":" + quoted(value)));
      return "{" + String.join(",", members) + "}";
    }

    private static String quoted(String value) {
      StringBuilder quoted = new StringBuilder("\"");
      for (char one : value.toCharArray()) {
        boolean isPlain = one >= ' ' && one != '"' && one != '\\';
        quoted.append(isPlain ? String.valueOf(one) : String.format("\\u%04x", (int) one));
      }
      return quoted.append('"').toString();
    }

    /** Throws IllegalArgumentException if the text is not a JSON object. */
    @SuppressWarnings("unchecked")
    static Map<String, Object> read(String text) {
      Json json = new Json(text);
      try {
        if (json.value(0) instanceof Map<?, ?> object && json.next() == 0) return (Map<String, Object>) object;
      } catch (IndexOutOfBoundsException error) {
        // The text ended too early.
      }
      throw new IllegalArgumentException("not a JSON object");
    }

    private Object value(int depth) {
      char first = next();
      if (depth > 20) throw new IllegalArgumentException("too deep");
      if (first == '{' || first == '[') return group(first == '{', depth);
      if (first == '"') return string();
      int from = at;
      while (at < text.length() && "{}[]:,\" \t\r\n".indexOf(text.charAt(at)) < 0) at++;
      String word = text.substring(from, at);
      return switch (word) {
        case "true" -> true;
        case "false" -> false;
        case "null" -> null;
        default -> word.matches("-?\\d{1,18}") ? (Object) Long.valueOf(word) : Double.valueOf(word);
      };
    }

    private Object group(boolean isObject, int depth) {
      Map<String, Object> object = new LinkedHashMap<>();
      List<Object> list = new ArrayList<>();
      char end = isObject ? '}' : ']';
      at++;
      while (next() != end) {
        String name = isObject ? string() : null;
        if (isObject) expect(':');
        Object value = value(depth + 1);
        if (isObject) object.put(name, value);
        else list.add(value);
        if (next() != end) expect(',');
      }
      at++;
      return isObject ? object : list;
    }

    private String string() {
      StringBuilder string = new StringBuilder();
      expect('"');
      for (char one = text.charAt(at++); one != '"'; one = text.charAt(at++)) {
        if (one != '\\') {
          string.append(one);
          continue;
        }
        char escaped = text.charAt(at++);
        if (escaped == 'u') {
          string.append((char) Integer.parseInt(text.substring(at, at += 4), 16));
        } else {
          int index = "bfnrt".indexOf(escaped);
          string.append(index < 0 ? escaped : "\b\f\n\r\t".charAt(index));
        }
      }
      return string.toString();
    }

    private void expect(char sign) {
      if (next() != sign) throw new IllegalArgumentException("expected " + sign + " at " + at);
      at++;
    }

    /** The next sign after white space, which stays. 0 at the end. */
    private char next() {
      while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) at++;
      return at < text.length() ? text.charAt(at) : 0;
    }
  }

  public static void main(String[] args) throws IOException {
    Set<String> used = new HashSet<>();
    Map<String, String> env = System.getenv();
    String app = env.getOrDefault("APP", "default");
    Postern postern = new Postern(env.get("POSTERN_URL"), env.get("SECRET_KEY"), app, (id, end) -> used.add(id));
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      try {
        Answer answer = answerTo(postern, line.trim().split(" +"));
        StringBuilder shown = new StringBuilder(answer.outcome);
        for (String name : SHOWN) if (answer.get(name) != null) shown.append(" " + name + "=" + answer.get(name));
        System.out.println(shown);
      } catch (PosternException error) {
        System.out.println("error " + error.getMessage());
      }
    }
  }

  private static final String[] SHOWN =
      "id codeLength pass scene to reason triesLeft lockedForMs retryAfterMs detail".split(" ");

  private static Answer answerTo(Postern postern, String[] words) {
    // A server has both from the visitor's request.
    Person visitor = new Person(null, "en");
    // #region calls
    switch (words[0]) {
      case "send": {
        String channel = words[1], to = words[2], scene = words[3];
        return postern.send(channel, to, scene, visitor, null);
      }
      case "check": {
        String channel = words[1], to = words[2], scene = words[3], code = words[4], id = words[5];
        return postern.check(channel, to, scene, code, id, visitor);
      }
      case "verify": {
        String pass = words[1], scene = words[2], channel = words[3], to = words[4];
        return postern.verify(pass, scene, channel, to);
      }
      case "read": {
        String pass = words[1], scene = words[2];
        return postern.read(pass, scene);
      }
    }
    // #endregion calls
    throw new PosternException("there is no command " + words[0]);
  }
}
