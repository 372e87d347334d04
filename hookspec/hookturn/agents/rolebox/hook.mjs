// @ts-check
/**
 * hookturn in a role of rolebox: hands what happens to `hookturn bridge rolebox`, and does what it answers.
 *
 * It decides nothing. `hookturn install rolebox ROLE_DIR` writes the three constants below, and enters this file
 * in role.yaml.
 */
import { spawn } from "node:child_process"

/** The program and its words; the event's payload goes to its standard input. @type {string[]} */
const COMMAND = ["hookturn", "bridge", "rolebox"]

/** Seconds that an answer may take. */
const SECONDS = 60

/** Events that refuse when no answer comes, because a hook there fails closed. @type {string[]} */
const CLOSED = []

/** Events of the host that hooks can see; the others come in hundreds, or tell what rolebox has told. */
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

/**
 * What the bridge answers: why a call is refused, its arguments, the parts of the system prompt, a text for the
 * next one, texts for the user.
 * @typedef {{ refuse?: string, args?: Record<string, unknown>, system?: string[], inject?: string, warn?: string[] }} Answer
 */

/** Sub-agents: session -> the session that started it, "" for one of the user's. @type {Map<string, string>} */
const parents = new Map()

/** Session -> name of its agent. @type {Map<string, string>} */
const agents = new Map()

/**
 * @param {string} hook
 * @param {string} sessionID
 * @param {unknown} input
 * @returns {Promise<Answer>}
 */
function ask(hook, sessionID, input) {
  return new Promise((resolve) => {
    /** @param {string} why */
    const failed = (why) => {
      const words = `hookturn did not answer (${why})`
      resolve(CLOSED.includes(hook) ? { refuse: `${words}, and a hook here fails closed` } : { warn: [words] })
    }
    const [program = "", ...words] = COMMAND
    const child = spawn(program, words, { stdio: ["pipe", "pipe", "pipe"] })
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
    const about = { agent: agents.get(sessionID), parent: parents.get(sessionID) }
    child.stdin.end(JSON.stringify({ hook, sessionID, input, directory: process.cwd(), ...about }))
  })
}

/**
 * @param {string} hook
 * @param {any} ctx rolebox's context of the hook
 * @param {any} input
 * @param {string} [session]
 */
async function forward(hook, ctx, input, session = ctx?.sessionID ?? "") {
  if (ctx?.agent && session) agents.set(session, ctx.agent)
  if (session && !parents.has(session)) parents.set(session, "")
  const answer = await ask(hook, session, input)
  for (const words of answer.warn ?? []) (ctx?.log?.warn ?? console.error).call(ctx?.log, `hookturn: ${words}`)
  if (answer.refuse !== undefined && input?.args) {
    spoil(input.args, answer.refuse)
    ctx?.inject?.(`The call of ${input.tool} was refused: ${answer.refuse}`)
  }
  // What stands in these objects counts; a new object is not seen.
  if (answer.args) {
    for (const old of Object.keys(input.args)) if (!(old in answer.args)) delete input.args[old]
    Object.assign(input.args, answer.args)
  }
  if (answer.system) input.system.splice(0, Infinity, ...answer.system)
  if (answer.inject) ctx?.inject?.(answer.inject)
}

/**
 * Make arguments that no tool takes: rolebox lets a hook refuse in no other way.
 * @param {Record<string, unknown>} args
 * @param {string} reason
 */
function spoil(args, reason) {
  for (const [key, value] of Object.entries(args)) {
    args[key] = typeof value === "object" && value !== null ? reason : { refused: reason }
  }
  args.hookturn_refused = reason
}

/** @param {any} ctx @param {any} input */
export const onChatMessage = (ctx, input) => forward("chat.message", ctx, input)

/** @param {any} ctx @param {any} input */
export const onToolBefore = (ctx, input) => forward("tool.execute.before", ctx, input)

/** @param {any} ctx @param {any} input */
export const onToolAfter = (ctx, input) => forward("tool.execute.after", ctx, input)

/** @param {any} ctx @param {any} input */
export const onSystemTransform = (ctx, input) => forward("system.transform", ctx, input)

/** @param {any} ctx @param {any} input */
export const onEvent = async (ctx, input) => {
  const properties = input.properties ?? {}
  const session = properties.sessionID ?? properties.info?.id ?? ctx?.sessionID ?? ""
  if (input.type === "session.created") {
    parents.set(session, properties.info?.parentID ?? "")
    if (properties.info?.parentID) return // its turn begins with its message
  }
  if (BUS.has(input.type)) await forward("event", ctx, input, session)
  if (input.type === "session.deleted") parents.delete(session)
}

export const onLoad = () => {}

export const onDispose = async () => {
  for (const [session, parent] of parents) if (!parent) await forward("dispose", undefined, {}, session)
  parents.clear()
}

// rolebox reads named exports; its documentation says the default one.
export default { onChatMessage, onToolBefore, onToolAfter, onSystemTransform, onEvent, onLoad, onDispose }
