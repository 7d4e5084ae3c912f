/*
 * Codes by SMS and mail for a server in C#, with the library of .NET or Mono alone.
 *
 * See docs/guides/your-language.md. Copy the class into your project, and try it in a terminal:
 *
 *   mcs -r:System.Net.Http -r:System.Runtime.Serialization -r:System.Xml -r:System.Xml.Linq Postern.cs
 *   POSTERN_URL=http://localhost:3000 SECRET_KEY=psk_... mono Postern.exe
 *   send sms +8613800138000 signup
 *   check sms +8613800138000 signup 1234 <id of the send>
 *   verify <pass of the check> signup sms +8613800138000
 */
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Net.Http;
using System.Runtime.Serialization.Json;
using System.Text;
using System.Threading.Tasks;
using System.Xml;
using System.Xml.Linq;

// #region client
/// <summary>`Outcome`: see the table in the guide. The members are those of Postern's answer.</summary>
public sealed class PosternAnswer
{
    private readonly XElement members;
    private readonly Dictionary<string, string> more = new Dictionary<string, string>();

    public PosternAnswer(string outcome, XElement members = null)
    {
        Outcome = outcome;
        this.members = members;
    }

    public string Outcome { get; }

    /// <summary>The text of a member, or null if the answer has no such member.</summary>
    public string this[string name]
    {
        get => more.TryGetValue(name, out var value) ? value : members?.Element(name)?.Value;
        set => more[name] = value;
    }
}

/// <summary>A fault of this program, its key or its settings. Log it, and show the person a general sentence.</summary>
public sealed class PosternException : Exception
{
    public PosternException(string message) : base(message) { }
}

/// <summary>Many threads may use one object.</summary>
public sealed class Postern
{
    /// <summary>The person can do something about these. `detail` is the sentence for them.</summary>
    private static readonly HashSet<string> ForThePerson = new HashSet<string>
    {
        "limited", "locked", "code_mismatch", "code_gone", "invalid_recipient", "destination_not_allowed",
    };

    private static readonly int[] NoAnswer = { 0, 502, 503, 504 };

    private readonly HttpClient http = new HttpClient { Timeout = TimeSpan.FromSeconds(5) };
    private readonly string url;
    private readonly string key;

    public Postern(string url, string key)
    {
        this.url = url;
        this.key = key;
    }

    /// <param name="ip">The visitor's address.</param>
    /// <param name="idempotencyKey">One per press of the button, such as a hidden field.</param>
    public Task<PosternAnswer> Send(
        string channel, string to, string scene,
        string ip = null, string language = "en", string idempotencyKey = null)
    {
        var body = Json(("channel", channel), ("to", to), ("scene", scene), ("ip", ip));
        return Call("accepted", "/v1/captchas", body, language, idempotencyKey ?? Guid.NewGuid().ToString());
    }

    /// <param name="id">Of the send. With it, a check whose answer was lost can be repeated.</param>
    public Task<PosternAnswer> Check(
        string channel, string to, string scene, string code, string id, string ip = null, string language = "en")
    {
        var body = Json(
            ("channel", channel), ("to", to), ("scene", scene), ("code", code), ("id", id), ("ip", ip));
        return Call("passed", "/v1/captchas/check", body, language);
    }

    /// <summary>
    /// A pass that a page has sent. Find accounts by `to` of the answer, which has one spelling per recipient.
    /// </summary>
    public async Task<PosternAnswer> Verify(string pass, string scene, string channel, string to)
    {
        var body = Json(("pass", pass), ("channel", channel), ("to", to));
        var answer = await Call("valid", "/v1/passes/verify", body).ConfigureAwait(false);
        var isValid = answer["valid"] == "true" && answer["scene"] == scene;
        if (answer.Outcome != "valid" || isValid) return answer;
        return new PosternAnswer("invalid") { ["reason"] = answer["reason"] ?? "other_scene" };
    }

    private async Task<PosternAnswer> Call(
        string success, string path, byte[] body, string language = "en", string idempotencyKey = null)
    {
        for (var attempt = 1; ; attempt++)
        {
            var request = new HttpRequestMessage(HttpMethod.Post, url + path) { Content = new ByteArrayContent(body) };
            request.Content.Headers.TryAddWithoutValidation("Content-Type", "application/json");
            request.Headers.TryAddWithoutValidation("Authorization", "Bearer " + key);
            request.Headers.TryAddWithoutValidation("Accept-Language", language);
            if (idempotencyKey != null) request.Headers.TryAddWithoutValidation("Idempotency-Key", idempotencyKey);
            var (status, members, wait) = await Ask(request).ConfigureAwait(false);
            var code = members?.Element("code")?.Value;
            // Nothing was changed, or the answer was lost. The same request with the same key sends no second message.
            if (!NoAnswer.Contains(status) && code != "idempotency_in_progress")
            {
                return Judged(status < 300 ? success : code, path, status, members);
            }
            if (attempt == 3 || wait > TimeSpan.FromSeconds(2))
            {
                var afterMs = wait.TotalMilliseconds.ToString();
                return new PosternAnswer("unavailable", members) { ["retryAfterMs"] = afterMs };
            }
            await Task.Delay(wait).ConfigureAwait(false);
        }
    }

    private static PosternAnswer Judged(string outcome, string path, int status, XElement members)
    {
        var answer = new PosternAnswer(outcome, members);
        if (status < 300) return answer;
        var errors = members?.Element("errors")?.Elements().ToList() ?? new List<XElement>();
        var areTyped = errors.Count > 0 && errors.All(error => IsTyped(error.Element("path")?.Value));
        if (outcome == "invalid_request" && areTyped)
        {
            answer["detail"] = string.Join(" ", errors.Select(error => error.Element("message")?.Value));
        }
        else if (outcome == null || !ForThePerson.Contains(outcome))
        {
            throw new PosternException($"Postern answers {status} to {path}: {members}");
        }
        return answer;
    }

    private static bool IsTyped(string path) => path == "to" || path == "code";

    /// <summary>The status (0: no answer), the body's members, the time to wait before the same request.</summary>
    private async Task<(int, XElement, TimeSpan)> Ask(HttpRequestMessage request)
    {
        try
        {
            using (var response = await http.SendAsync(request).ConfigureAwait(false))
            {
                var members = Members(await response.Content.ReadAsByteArrayAsync().ConfigureAwait(false));
                var status = (int)response.StatusCode;
                // A success without its body is no answer. A proxy may answer with a page.
                if (members == null && status < 300) status = 0;
                return (status, members, response.Headers.RetryAfter?.Delta ?? TimeSpan.FromSeconds(1));
            }
        }
        catch (Exception error)
            when (error is HttpRequestException || error is TaskCanceledException || error is IOException)
        {
            return (0, null, TimeSpan.FromSeconds(1));
        }
    }

    /// <summary>The members of a JSON object as elements, or null if the text is none.</summary>
    private static XElement Members(byte[] text)
    {
        try
        {
            using (var reader = JsonReaderWriterFactory.CreateJsonReader(text, XmlDictionaryReaderQuotas.Max))
            {
                var members = XElement.Load(reader);
                return (string)members.Attribute("type") == "object" ? members : null;
            }
        }
        catch (Exception error) when (error is XmlException || error is FormatException)
        {
            return null;
        }
    }

    /// <summary>A value that is null is left out.</summary>
    private static byte[] Json(params (string Name, string Value)[] fields)
    {
        using (var stream = new MemoryStream())
        {
            using (var writer = JsonReaderWriterFactory.CreateJsonWriter(stream, new UTF8Encoding(false)))
            {
                var given = fields.Where(field => field.Value != null);
                var members = given.Select(field => new XElement(field.Name, field.Value));
                new XElement("root", new XAttribute("type", "object"), members).WriteTo(writer);
            }
            return stream.ToArray();
        }
    }
}
// #endregion client

public static class Program
{
    private static readonly string[] Shown =
        "id codeLength pass scene to reason triesLeft lockedForMs retryAfterMs detail".Split(' ');

    public static void Main() => AnswerLines().GetAwaiter().GetResult();

    private static async Task AnswerLines()
    {
        var postern = new Postern(
            Environment.GetEnvironmentVariable("POSTERN_URL"), Environment.GetEnvironmentVariable("SECRET_KEY"));
        for (var line = Console.ReadLine(); line != null; line = Console.ReadLine())
        {
            try
            {
                var answer = await AnswerTo(postern, line.Trim().Split(' '));
                var members = Shown.Where(name => answer[name] != null).Select(name => $" {name}={answer[name]}");
                Console.WriteLine(answer.Outcome + string.Concat(members));
            }
            catch (PosternException error)
            {
                Console.WriteLine("error " + error.Message.Replace("\n", " "));
            }
        }
    }

    private static Task<PosternAnswer> AnswerTo(Postern postern, string[] words)
    {
        // A server has both from the visitor's request.
        string ip = null, language = "en";
        // #region calls
        switch (words[0])
        {
            case "send":
            {
                string channel = words[1], to = words[2], scene = words[3];
                return postern.Send(channel, to, scene, ip, language);
            }
            case "check":
            {
                string channel = words[1], to = words[2], scene = words[3], code = words[4], id = words[5];
                return postern.Check(channel, to, scene, code, id, ip, language);
            }
            case "verify":
            {
                string pass = words[1], scene = words[2], channel = words[3], to = words[4];
                return postern.Verify(pass, scene, channel, to);
            }
        }
        // #endregion calls
        throw new PosternException("there is no command " + words[0]);
    }
}
