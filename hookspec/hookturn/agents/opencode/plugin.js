// @ts-check
/**
 * hookturn in opencode: hands what happens to `hookturn bridge opencode`, and does what it answers.
 *
 * It decides nothing. `hookturn install opencode` writes the three constants below, and puts this file among
 * opencode's plugins. Source of the functions and of what may be changed in place: @opencode-ai/plugin 1.18.33.
 */
import { spawn } from "node:child_process"

/** The program and its words; the event's payload goes to its standard input. @type {string[]} */
const COMMAND = ["hookturn", "bridge", "opencode"]

/** Seconds that an answer may take. */
const SECONDS = 60

/** Functions that refuse when no answer comes, because a hook there fails closed. @type {string[]} */
const CLOSED = []

/** Bus events that hooks can see; the others come in hundreds, or tell what a function has told. */
const BUS = new Set([
  "session.created",
  "session.idle",
  "session.error",
  "session.deleted",
  "session.compacted",
  "permission.asked",
  "permission.replied",
  "file.edited",
  "command.executed",
])

/** How the system prompts of requests on the side begin: titles and summaries are no turn of the agent. */
const ASIDE = /^\s*You are (a title generator|an? .{0,40}\bsummariz)/

/**
 * What the bridge answers: an error to throw, plain fields to set, objects to change in place, lists to replace or
 * add to, another text of the message and context for it, texts for the user.
 * @typedef {{
 *   throw?: string,
 *   set?: Record<string, unknown>,
 *   assign?: Record<string, Record<string, unknown>>,
 *   replace?: Record<string, unknown[]>,
 *   push?: Record<string, unknown[]>,
 *   message?: { text: string | null, context: string },
 *   warn?: string[],
 * }} Answer
 */

/**
 * Ask the bridge.
 * @param {string} name the function or "event"
 * @param {unknown} payload
 * @param {string} directory where the session works
 * @returns {Promise<Answer>}
 */
function ask(name, payload, directory) {
  return new Promise((resolve) => {
    /** @param {string} why */
    const failed = (why) => {
      const words = `hookturn did not answer (${why})`
      resolve(CLOSED.includes(name) ? { throw: `${words}, and a hook here fails closed` } : { warn: [words] })
    }
    const [program = "", ...words] = COMMAND
    const child = spawn(program, words, { cwd: directory, stdio: ["pipe", "pipe", "pipe"] })
    const timer = setTimeout(() => {
      child.kill("SIGKILL")
      failed(`nothing within ${SECONDS} s`)
    }, SECONDS * 1000)
    let out = ""
    let err = ""
    child.stdout.setEncoding("utf8").on("data", (/** @type {string} */ text) => (out += text))
    child.stderr.setEncoding("utf8").on("data", (/** @type {string} */ text) => (err += text))
    child.stdin.on("error", () => {}) // it may end without reading
    child.on("error", (error) => {
      clearTimeout(timer)
      failed(error.message)
    })
    child.on("close", (code) => {
      clearTimeout(timer)
      const notes = err.split("\n").flatMap((line) => line.replace(/^hookturn: /, "").trim() || [])
      if (code && !out.trim()) return failed(`exit code ${code}`)
      try {
        const answer = JSON.parse(out || "{}")
        resolve(notes.length ? { ...answer, warn: [...(answer.warn ?? []), ...notes] } : answer)
      } catch {
        failed("its answer is no JSON")
      }
    })
    child.stdin.end(JSON.stringify(payload))
  })
}

/** Whether opencode's own screen is on, which a line on standard error would spoil. */
const SCREEN = Boolean(process.stderr.isTTY) && !process.argv.includes("run")

/**
 * Tell the user.
 * @param {string} words
 * @param {import("@opencode-ai/plugin").PluginInput["client"]} client
 */
function tell(words, client) {
  if (SCREEN) client.tui.showToast({ body: { message: `hookturn: ${words}`, variant: "warning" } }).catch(() => {})
  else console.error(`hookturn: ${words}`)
}

/**
 * Do what the bridge answered. Objects and lists are changed in place: opencode does not see new ones.
 * @param {Answer} answer
 * @param {any} output
 */
function apply(answer, output) {
  if (answer.throw !== undefined) throw new Error(answer.throw)
  Object.assign(output, answer.set ?? {})
  for (const [key, fields] of Object.entries(answer.assign ?? {})) {
    for (const old of Object.keys(output[key])) if (key === "args" && !(old in fields)) delete output[key][old]
    Object.assign(output[key], fields)
  }
  for (const [key, items] of Object.entries(answer.replace ?? {})) output[key].splice(0, Infinity, ...items)
  for (const [key, items] of Object.entries(answer.push ?? {})) output[key].push(...items)
  if (answer.message) change(answer.message, output)
}

/**
 * Change a message of the user's: its words, and what the model reads with them.
 * @param {{ text: string | null, context: string }} message
 * @param {{ message: import("@opencode-ai/sdk").UserMessage, parts: import("@opencode-ai/sdk").Part[] }} output
 */
function change({ text, context }, { message, parts }) {
  const typed = parts.filter((part) => part.type === "text" && !part.synthetic)
  if (text !== null) {
    for (const part of typed) if (part.type === "text") part.text = part === typed[0] ? text : ""
  }
  if (!context) return
  // Parts are read in the order of their ids.
  const last = parts.at(-1)?.id ?? `prt_${message.id.replace(/^msg_/, "")}`
  parts.push({ id: `${last}0`, sessionID: message.sessionID, messageID: message.id, type: "text", text: context, synthetic: true })
}

/** Whether this is the project's plugin, not the user's. */
const PROJECTS = /[\\/]\.opencode[\\/]plugin$/.test(import.meta.dirname ?? "")

/**
 * Folder -> the plugin that tells of it. Where hookturn is installed for the user and in the project, opencode loads
 * two, and hooks must hear everything once. The user's counts: a repository's may be that of another machine.
 * @type {Map<string, { project: boolean }>}
 */
const TELLING = (/** @type {any} */ (globalThis)[Symbol.for("hookturn.opencode")] ??= new Map())

/** @type {import("@opencode-ai/plugin").Plugin} */
export const Hookturn = async ({ client, directory, worktree }) => {
  const me = { project: PROJECTS }
  if (!PROJECTS || TELLING.get(directory)?.project !== false) TELLING.set(directory, me)
  const silent = () => TELLING.get(directory) !== me

  /** Session -> the session that started it, "" for one of the user's. @type {Map<string, string>} */
  const parents = new Map()
  /** Session -> name of its agent. @type {Map<string, string>} */
  const agents = new Map()
  /** Session -> its last words in this turn. @type {Map<string, string>} */
  const said = new Map()
  /** Calls that have begun and not ended. @type {Set<string>} */
  const running = new Set()
  /** Bus events are told one after another, and before what comes after them. @type {Promise<void>} */
  let told = Promise.resolve()

  /** @param {string} session */
  const parentOf = async (session) => {
    const known = parents.get(session)
    if (known !== undefined || !session) return known ?? ""
    const found = await client.session.get({ path: { id: session } }).catch(() => undefined)
    const parent = found?.data?.parentID ?? ""
    parents.set(session, parent)
    return parent
  }

  /**
   * @param {string} name
   * @param {string} session
   * @param {object} what
   */
  const send = async (name, session, what) => {
    const about = { parent: await parentOf(session), agent: agents.get(session), text: said.get(session) }
    const answer = await ask(name, { hook: name, ...what, directory, worktree, ...about }, directory)
    for (const words of answer.warn ?? []) tell(words, client)
    // opencode tells the reason of a refused call itself, but no other.
    if (answer.throw !== undefined && name !== "tool.execute.before") tell(answer.throw, client)
    return answer
  }

  /**
   * @param {string} name
   * @param {any} input
   * @param {any} output
   */
  const forward = async (name, input, output) => {
    if (silent()) return
    await told
    apply(await send(name, input.sessionID ?? "", { input, output }), output)
  }

  /**
   * The session of a bus event that hooks can see, or undefined for another.
   * @param {any} event
   * @returns {string | undefined}
   */
  const heard = ({ type, properties }) => {
    if (type === "message.part.updated") {
      const part = properties.part
      const call = [part.callID, part.id].find((id) => running.has(id))
      if (part.type !== "tool" || part.state.status !== "error" || call === undefined) return undefined
      running.delete(call)
      part.callID = call
      return part.sessionID
    }
    if (!BUS.has(type)) return undefined
    const session = properties.sessionID ?? properties.info?.id ?? ""
    if (type !== "session.created") return session
    parents.set(session, properties.info.parentID ?? "")
    return properties.info.parentID ? undefined : session
  }

  return {
    event: ({ event }) => {
      if (silent()) return Promise.resolve()
      const copy = structuredClone(event)
      const session = heard(copy)
      if (session === undefined) return Promise.resolve()
      told = told
        .then(async () => apply(await send("event", session, { event: copy }), {}))
        .catch((error) => tell(error.message, client))
      return told
    },
    "chat.message": async (input, output) => {
      agents.set(input.sessionID, output.message.agent)
      said.delete(input.sessionID)
      await forward("chat.message", input, output)
    },
    "tool.execute.before": async (input, output) => {
      await forward("tool.execute.before", input, output)
      running.add(input.callID)
    },
    "tool.execute.after": async (input, output) => {
      running.delete(input.callID)
      await forward("tool.execute.after", input, output)
    },
    "shell.env": async (input, output) => {
      if (input.sessionID) await forward("shell.env", input, output)
    },
    "experimental.chat.system.transform": async (input, output) => {
      if (input.sessionID && !ASIDE.test(output.system[0] ?? ""))
        await forward("experimental.chat.system.transform", input, output)
    },
    "experimental.text.complete": async (input, output) => {
      await forward("experimental.text.complete", input, output)
      said.set(input.sessionID, output.text)
    },
    "experimental.session.compacting": (input, output) => forward("experimental.session.compacting", input, output),
    dispose: async () => {
      if (silent()) return
      await told
      for (const [session, parent] of parents) {
        if (!parent) apply(await send("dispose", session, { input: { sessionID: session }, output: {} }), {})
      }
      if (!silent()) TELLING.delete(directory)
    },
  }
}
