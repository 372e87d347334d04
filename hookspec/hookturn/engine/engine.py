"""The engine: fires events through plans of hooks, each isolated from the others, and returns Outcomes."""

from __future__ import annotations

from functools import partial
from threading import RLock
from time import monotonic, perf_counter

from ..spec.answers import STRATEGIES, Deny
from ..spec.errors import EventError, RegistrationError, did_you_mean
from ..spec.events import Error, Event, OutcomeEvent, ToolEvent
from .capabilities import HookContext, logger
from .failures import STRIKES, Strikes, note_failure
from .fold import Fold, Permissions
from .nesting import LEVELS, MAX_NESTING, Nest, nest_now, through_service, too_deep
from .outcome import HookRecord, Outcome, describe
from .plan import Plan, Step
from .registry import Plugin, Registry
from .state import Stores
from .waiting import start_thread, thrown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
    from typing import Any, Literal

    from ..spec.timings import Timing
    from ..spec.tools import Tool
    from .composition import Composition
    from .fold import Vote
    from .lifecycle import Fire
    from .manager import Manager
    from .session import Session
    from .session_state import SessionState
    from .waiting import Wait

    Approver = Callable[[Any], Any]

MAX_ATTACHED = 1_000
"""Attached sessions that are kept in memory; the others are read from their files again."""

GUARD_SHARE = 0.2
"""Part of a fire's time that is kept for guards."""

WATCH_SHARE = 0.25
"""Part of what is left of a fire's time that on_outcome and on_error hooks may take: a decision is not lost for them."""

LADDER_TIMINGS = ("on_tool_call_start", "pre_tool_execution")
"""Where a session applies the permission rules."""


# Not by the import's own name: CPython compiles that for functions of a module, and calls of methods cost more.
_nest = nest_now
_TOP, _FIRST = LEVELS[0], LEVELS[1]
_new = object.__new__


class Engine:
    """Calls hooks. Loads nothing by itself: no configuration, no entry points, no builtins.

    Parameters:
        plugins: plugin objects, or (name, object) pairs; registered in order.
        host: the host's own handler: a plugin whose hooks run among the unphased ones.
        hookspecs: own timings (see ``hookspec``): functions, modules or objects.
        tools: what the host's tools mean: name -> Tool.
        permissions: ``{"always_allow": [...], "ask": [...], "deny": [...]}``, used by sessions.
        approver: called with the PermissionRequest when a call needs a yes; returns True, False, an Allow or
            a Deny; may be a coroutine function for async sessions.
        services: what hooks may call, by name (``ctx.services["model"](...)``).
        recovers: Recover strategies that the host can carry out.
        composition: another way to combine the hooks' answers: a ``Composition``, or a profile's name
            (first_deny, run_all, strictest, unanimous). None for the usual one.
        mode: ``enforce``, or ``monitor``: all answers are recorded without effect.
        max_continue: how often in a row a turn may be made to go on.
        state_dir: folder for values and sessions that outlive the process; None keeps them in memory.
        project_dir: the project's folder, for ``ctx.project_dir``.
        output_dir: where builtins may write; default ``.hookturn`` in the project.
        dry_run: mark all events as dry.
        threaded: run synchronous hooks on threads that can be abandoned at their time limit.

    Raises:
        RegistrationError: when a plugin or a spec is refused (all others were tried first).
    """

    def __init__(
        self,
        plugins: Iterable[Any] = (),
        *,
        host: object = None,
        hookspecs: Iterable[Any] = (),
        tools: Mapping[str, Tool] | None = None,
        permissions: Permissions | Mapping[str, Any] | None = None,
        approver: Approver | None = None,
        services: Mapping[str, Callable[..., Any]] | None = None,
        recovers: Iterable[str] = (),
        composition: Composition | str | None = None,
        mode: Literal["enforce", "monitor"] = "enforce",
        max_continue: int = 8,
        state_dir: Any = None,
        project_dir: Any = "",
        output_dir: Any = "",
        dry_run: bool = False,
        threaded: bool = False,
    ) -> None:
        if mode not in ("enforce", "monitor"):
            raise ValueError(f"mode must be 'enforce' or 'monitor', got {mode!r}")
        self.registry = Registry(hookspecs)
        self.tools = dict(tools) if tools else None
        self.permissions = Permissions.of(permissions)
        self.approver = approver
        self.services = dict(services or {})
        self.recovers = frozenset(recovers)
        for strategy in self.recovers:
            if strategy not in STRATEGIES:
                raise ValueError(
                    f"recovers: unknown strategy {strategy!r}{did_you_mean(str(strategy), STRATEGIES)}; "
                    f"known are {', '.join(STRATEGIES)}"
                )
        if isinstance(composition, str):
            from .composition import Composition

            composition = Composition(composition)
        self.composition = composition
        self.mode = mode
        self.max_continue = max_continue
        self.project_dir = str(project_dir) if project_dir else ""
        self.output_dir = str(output_dir) if output_dir else ""
        self.dry_run = dry_run
        self.threaded = threaded
        self.stores = Stores(state_dir)
        self.failed: list[RegistrationError] = []
        """Plugins that were refused or failed to load, with name, cause and remedy."""
        self.noted: dict[tuple[str, ...], float] = {}
        """For callers: when they noted what about this engine (``agents.memory``)."""
        self.notices: list[str] = []
        """What the user of an agent is told once a session: plugins that were wanted and are off, and why."""
        self.closed = False
        self._plans: dict[str, Plan | None] = {}
        # Plans that the hot loop of ``fire`` may use as they are; False for timings without hooks.
        self._hot: dict[str, Plan | Literal[False]] = {}
        self._lock = RLock()
        self._sessions: dict[str, SessionState] = {}
        self._loose: dict[str, list[str]] = {}  # injections for sessions that the engine does not run
        self._strikes = Strikes()
        self._struck = self._strikes.counts  # looked at in each fire
        self._pool: Any = None  # helper loops for coroutine hooks in synchronous code
        refused: list[RegistrationError] = []
        given: list[tuple[Any, Any, str]] = [("host", host, "host")] if host is not None else []
        if not hasattr(plugins, "__iter__") or isinstance(plugins, str):
            raise TypeError(f"plugins takes a list of plugins, got {type(plugins).__name__}")
        for plugin in plugins:
            name, item = plugin if isinstance(plugin, tuple) and len(plugin) == 2 else (None, plugin)
            given.append((name, item, "host"))
        for name, item, layer in given:
            try:
                self.register(item, name, layer=layer)
            except RegistrationError as error:
                refused.append(error)
        if refused:
            if len(refused) > 1:
                refused[0].args = ("; ".join(str(error) for error in refused),)
            raise refused[0]

    @classmethod
    def from_project(cls, path: Any = None, **options: Any) -> Engine:
        """Build the engine of a project: its layers of configuration, builtins, entry points, foreign formats.

        Parameters:
            path: a folder in the project; None asks the agent's project variable, then the current folder.
            options: keyword arguments of ``hookturn.project.assemble.assemble``.

        Returns:
            the engine; plugins that could not be loaded are listed in ``failed``.
        """
        from ..project.assemble import assemble

        engine: Engine = assemble(path, **options).engine
        return engine

    # -- registration ---------------------------------------------------------------------------

    def register(
        self,
        plugin: object,
        name: str | None = None,
        *,
        source: str = "",
        layer: str = "host",
        distribution: str = "",
        config: Any = None,
        options: Mapping[str, Any] | None = None,
    ) -> Plugin:
        """Register a plugin and call its on_load.

        Parameters:
            plugin: an instance, or a module.
            name: its name; default: its own.
            source: where it was declared, for records.
            layer: host, managed, user, project, installed or builtin (see ``registry.LAYERS``).
            distribution: name and version of the distribution that brought it.
            config: its settings, as ``ctx.config``.
            options: what a configuration sets over the hookimpls' options: phase, priority, tools, agents,
                event_types, timeout, guard, on_failure, mode.

        Returns:
            what the registry knows of it.

        Raises:
            RegistrationError: when it is refused, or its on_load fails.
        """
        with self._lock:
            try:
                record = self.registry.add(
                    plugin,
                    name,
                    source=source,
                    layer=layer,
                    distribution=distribution,
                    config=config,
                    options=options,
                )
            except RegistrationError as error:
                self.failed.append(error)
                raise
            record.context = lambda event, watching=False: HookContext(self, record, event, watching)
            self._changed()
        try:
            self._call_lifecycle(record, "on_load", 10.0)
        except (Exception, SystemExit) as error:
            self.unregister(record.name)
            refused = record.error(
                f"its on_load failed: {describe(error)}", "Mend it, or switch the plugin off.", "on_load"
            )
            self.failed.append(refused)
            raise refused from error
        except BaseException:
            self.unregister(record.name)
            raise
        if record.unmarked:
            logger(record.name).warning(
                "{} of plugin {} is named like a hook and is never called: decorate it with @hookimpl",
                ", ".join(record.unmarked),
                record.name,
            )
        return record

    def unregister(self, name: str) -> None:
        """Take a plugin out (its on_dispose is not called).

        Raises:
            KeyError: when there is none of this name.
        """
        with self._lock:
            self.registry.remove(name)
            self._changed()

    def add_hookspecs(self, specs: Any, *, distribution: str = "") -> list[str]:
        """Add timings of a framework's own (see ``Registry.add_hookspecs``)."""
        with self._lock:
            names = self.registry.add_hookspecs(specs, distribution=distribution)
            self._changed()
            return names

    def _changed(self) -> None:
        """Throw all plans away."""
        self._plans = {}
        self._hot = {}

    @property
    def plugins(self) -> list[Plugin]:
        """The registered plugins in order."""
        return list(self.registry.plugins.values())

    @property
    def manager(self) -> Manager:
        """pluggy's own manager, with every spec and plugin, to look at; register plugins with the engine.

        Raises:
            RegistrationError: when it is made now, and pluggy refuses a plugin that is registered.
        """
        with self._lock:
            return self.registry.manager

    def plan(self, timing: str) -> Plan | None:
        """Return the plan of a timing; None when no hook implements it.

        Raises:
            EventError: for an unknown timing.
        """
        # The table first, the implementations second: a plan that a registration made stale
        # is stored into a table that nobody reads any more.
        table, hot = self._plans, self._hot
        if timing in table:
            return table[timing]
        with self._lock:
            spec = self.registry.timings.get(timing)
            if spec is None:
                known = self.registry.timings
                raise EventError(
                    f"no timing {timing!r} is registered{did_you_mean(timing, known)}; "
                    "own timings come in by Engine(hookspecs=[...])"
                )
            steps = [
                Step(spec, owner, function, options)
                for owner, function, options in self.registry.implementations(timing)
            ]
            if self.mode == "monitor":
                for step in steps:
                    step.monitor = True
        plan = Plan(spec, steps) if steps else None
        table[timing] = plan
        translated = self.tools is not None and issubclass(spec.event, ToolEvent)
        if (
            timing != "on_outcome"
            and not (self.threaded or self.dry_run or self._strikes.aside or translated or self.composition)
            and self.plan("on_outcome") is None
            and (plan is None or plan.plain)
        ):
            hot[timing] = plan or False
        return plan

    # -- firing ---------------------------------------------------------------------------------

    def fire(self, event: Event, *, measure: bool = False, deadline: float | None = None) -> Outcome:
        """Fire an event through its hooks and fold their answers. Hooks only: no permission rules.

        Parameters:
            event: what happened.
            measure: record every hook, with its time.
            deadline: seconds for the whole fire; the default has none beyond each hook's own.

        Returns:
            the outcome. Hooks' failures are in it, never raised.

        Raises:
            EventError: for an event whose timing is not registered.
            NestingError: when hooks fire hooks too deep.
        """
        plan = self._hot.get(event.timing)
        if plan is not None and not measure:
            if plan is False:
                out = _new(Outcome)
                out.event = event
                return out
            if deadline is None and _nest.get() is _TOP:
                token = _nest.set(_FIRST)
                try:
                    fold = self._loop(plan, event, None)
                finally:
                    _nest.reset(token)
                if fold is None:
                    out = _new(Outcome)
                    out.event = event
                    return out
                return self._folded(fold)
        return self._fire(self.plan(event.timing), event, measure, deadline, None, None)

    async def afire(self, event: Event, *, measure: bool = False, deadline: float | None = None) -> Outcome:
        """Fire an event from a coroutine; coroutine hooks run on the current loop. See ``fire``."""
        plan = self._hot.get(event.timing)
        if plan is None or measure or deadline is not None or _nest.get() is not _TOP:
            return await self._afire(self.plan(event.timing), event, measure, deadline, None, None)
        fold = self._fire_plain(plan, event, None, None) if plan else None
        if fold is None:
            return Outcome(event)
        out = fold.outcome()
        if fold.failures:
            await self._adrive(self._report(fold, out))
        return out

    def probe(self, event: Event) -> list[HookRecord]:
        """Call each hook of a timing alone, whatever the others say: to see what comes back from it.

        Neither on_outcome nor on_error hooks learn of it.

        Parameters:
            event: what to call them with; give ``dry_run=True`` to say that nothing has happened.

        Returns:
            a record of each hook, in order.
        """
        plan = self.plan(event.timing)
        records: list[HookRecord] = []
        if plan is not None:
            event = self._prepared(event)
            for step in plan.steps:
                alone = Plan(plan.timing, [step])
                fold: Fold = self.drive(self._steps(alone, event, True, None, None, None))
                records += fold.outcome().hooks
        return records

    def check_nesting(self) -> None:
        """Raise NestingError when a hook at the deepest level would fire once more."""
        if _nest.get().depth >= MAX_NESTING:
            raise too_deep()

    def decide(self, event: Event, *, measure: bool = False, deadline: float | None = None) -> Outcome:
        """Fire one event as a session does: at a tool call, the permission rules count too.

        For a single event without a session, such as ``hookturn fire``. Nobody is asked where it says ask.

        Parameters and exceptions: as ``fire``.
        """
        permissions = self.permissions if event.timing in LADDER_TIMINGS else None
        return self._fire(self.plan(event.timing), event, measure, deadline, permissions, None)

    def fire_op(self, op: Fire) -> Outcome:
        """Fire for a session's lifecycle."""
        out: Outcome = self.drive(self.fire_steps(op))
        return out

    def fire_steps(self, op: Fire) -> Generator[Wait, Any, Outcome]:
        """Fire for a session that is driven step by step: yields what is to be waited for."""
        permissions = self.permissions if op.ladder else None
        return self._whole(self.plan(op.event.timing), op.event, False, op.deadline, permissions, op.carried)

    async def afire_op(self, op: Fire) -> Outcome:
        """Fire for an asynchronous session's lifecycle."""
        out: Outcome = await self._adrive(self.fire_steps(op))
        return out

    def _fire(
        self,
        plan: Plan | None,
        event: Event,
        measure: bool,
        deadline: float | None,
        permissions: Permissions | None,
        carried: tuple[Vote, ...] | None,
    ) -> Outcome:
        out: Outcome = self.drive(self._whole(plan, event, measure, deadline, permissions, carried))
        return out

    async def _afire(
        self,
        plan: Plan | None,
        event: Event,
        measure: bool,
        deadline: float | None,
        permissions: Permissions | None,
        carried: tuple[Vote, ...] | None,
    ) -> Outcome:
        steps = self._whole(plan, event, measure, deadline, permissions, carried)
        out: Outcome = await self._adrive(steps)
        return out

    def _whole(
        self,
        plan: Plan | None,
        event: Event,
        measure: bool,
        deadline: float | None,
        permissions: Permissions | None,
        carried: tuple[Vote, ...] | None,
    ) -> Generator[Wait, Any, Outcome]:
        """A whole fire: the hooks, their failures to on_error, the outcome to on_outcome."""
        event = self._prepared(event)
        end = None if deadline is None else monotonic() + deadline
        watchers = self._plans["on_outcome"] if "on_outcome" in self._plans else self.plan("on_outcome")
        start = perf_counter() if watchers is not None or measure else 0.0
        times: list[tuple[str, float]] | None = [] if start else None
        fold: Fold | None = None
        if plan is not None and plan.plain and not measure and deadline is None and self._free(plan):
            fold = self._fire_plain(plan, event, permissions, carried, times)
        elif plan is not None or permissions or carried is not None or self.composition is not None:
            fold = yield from self._steps(plan, event, measure, deadline, permissions, carried, times)
        if fold is None:
            out = Outcome(event)
        else:
            out = fold.outcome()
            if out.overruled:
                _log_overruled(out)
            if fold.failures:
                yield from self._report(fold, out, end)
        if start:
            out.micros = (perf_counter() - start) * 1e6
        if times:
            out.times = tuple(times)
        if watchers is not None and event.timing != "on_outcome":
            watched = yield from self._watch(watchers, event, out, end)
            if watched is not None and watched.failures:
                yield from self._report(watched, out, end)
        return out

    def _prepared(self, event: Event) -> Event:
        if isinstance(event, ToolEvent) and self.tools is not None and event._table is None:
            event = event.replace()
            event.__dict__["_table"] = self.tools
        if self.dry_run and not event.dry_run:
            event = event.replace(dry_run=True)
        return event if self.composition is None else self.composition.prepare(event)

    def _free(self, plan: Plan) -> bool:
        """Whether nothing asks for more than the plain loop does."""
        return (
            self.composition is None
            and not self._strikes.aside
            and (plan.own or not self.threaded)
            and not _nest.get().skip
        )

    def _folded(self, fold: Fold) -> Outcome:
        out = fold.outcome()
        if fold.failures:
            self.drive(self._report(fold, out))
        return out

    def _fire_plain(
        self,
        plan: Plan,
        event: Event,
        permissions: Permissions | None,
        carried: tuple[Vote, ...] | None,
        times: list[tuple[str, float]] | None = None,
    ) -> Fold | None:
        """Call synchronous hooks at the depth that is due. None when no hook said anything."""
        nest = _nest.get()
        if nest.depth >= MAX_NESTING:
            raise too_deep(event.timing)
        fold = None
        if permissions is not None or carried is not None:
            fold = Fold(plan.timing, event, permissions, carried)
        token = _nest.set(LEVELS[nest.depth + 1])
        try:
            return self._loop(plan, event, fold, times)
        finally:
            _nest.reset(token)

    def _loop(
        self, plan: Plan, event: Event, fold: Fold | None, times: list[tuple[str, float]] | None = None
    ) -> Fold | None:
        """The hot loop: synchronous hooks without time limits of their own."""
        start = before = perf_counter()
        groups = plan.static
        if groups is None:  # as ``Plan.groups`` looks it up, without the call
            groups = plan.known.get(plan.key(event))
            if groups is None:
                groups = plan.groups(event)
        for group in groups:
            for function, context, step in group:
                if times is not None:
                    # A hook's time lasts until the next one is called: one look at the clock for each.
                    now = perf_counter()
                    if times:
                        times[-1] = (times[-1][0], now - before)
                    times.append((step.name, 0.0))
                    before = now
                try:
                    answer = function(event) if context is None else function(event, context)
                    if answer is None:
                        continue
                    if fold is None:
                        fold = Fold(plan.timing, event)
                    if hasattr(answer, "__await__"):
                        step.owner.note_async(step.function)
                        with self._lock:
                            self._changed()  # plans must know it next time
                        answer = self._wait(answer, step.timeout)
                        if answer is None:
                            continue
                    fold.add(step, answer)
                    event = fold.event
                except (Exception, SystemExit, GeneratorExit) as error:
                    if fold is None:
                        fold = Fold(plan.timing, event)
                    self._failed(fold, step, error, perf_counter() - start)
                if fold.ended and not step.guard:
                    behind = [other for _, _, other in group]
                    for skipped in behind[behind.index(step) + 1 :]:
                        fold.not_called(skipped, fold.ended)
                    break
        if times:
            times[-1] = (times[-1][0], perf_counter() - before)
        if self._struck:
            self._strikes.forgive([step for group in groups for _, _, step in group], fold, event.session_id)
        return fold

    def _steps(
        self,
        plan: Plan | None,
        event: Event,
        measure: bool,
        deadline: float | None,
        permissions: Permissions | None,
        carried: tuple[Vote, ...] | None,
        times: list[tuple[str, float]] | None = None,
    ) -> Generator[Wait, Any, Fold]:
        """The full loop. Yields what must be waited for: (awaitable or None, thread function or None, seconds)."""
        timing = plan.timing if plan is not None else self.registry.timings[event.timing]
        fold = self._new_fold(timing, plan, event, permissions, carried)
        if plan is None or bool(fold.ended):  # bool(): a bare test narrows the type to ''
            return fold
        nest = _nest.get()
        if nest.depth >= MAX_NESTING:
            raise too_deep(event.timing)
        begun = monotonic()
        end = begun + deadline if deadline is not None else None
        hooks_end = begun + deadline * (1 - GUARD_SHARE) if deadline is not None else None
        has_guards = plan.steps[-1].guard
        looks_on = timing.name in ("on_outcome", "on_error")
        called: list[Step] = []
        for step in plan.steps:
            if fold.ended and not step.guard:
                fold.not_called(step, fold.ended)
                continue
            aside = (event.session_id, step.plugin) in self._strikes.aside
            if aside and not (step.unfiltered or step.fails_closed):
                if measure:
                    fold.not_called(step, f"set aside after {STRIKES} failures in a row")
                continue
            if step.plugin in nest.skip:
                if measure:
                    fold.not_called(step, "the call came through this hook's own service")
                continue
            if step.filter is not None:
                why = step.filter.why_not(fold.event)
                if why:
                    if measure:
                        fold.not_called(step, why)
                    continue
            limit = step.timeout
            last = hooks_end if has_guards and not step.guard else end
            if last is not None and not (looks_on and step.owner.layer == "builtin"):  # records have it all
                left = last - monotonic()
                if left <= 0:
                    late = TimeoutError("the fire's time was used up before it")
                    self._failed(fold, step, late, 0.0, reached=False)
                    continue
                limit = min(limit, left)
            called.append(step)
            start = perf_counter()
            try:
                until = min(nest.end, monotonic() + limit)
                token = _nest.set(Nest(nest.depth + 1, nest.skip, nest.service_depth, until))
                try:
                    if self.threaded and not step.is_async and step.owner.layer != "builtin":
                        answer = yield None, partial(step.call, fold.event), limit
                    else:
                        try:
                            answer = step.call(fold.event)
                        except GeneratorExit as odd:
                            raise thrown(odd) from odd
                    if answer is not None and hasattr(answer, "__await__"):
                        answer = yield answer, None, limit
                finally:
                    _nest.reset(token)
                    if times is not None:
                        times.append((step.name, perf_counter() - start))
                elapsed = perf_counter() - start
                micros = elapsed * 1e6 if measure else 0.0
                if answer is not None:
                    fold.add(step, answer, micros)
                elif measure:
                    fold.quiet(step, micros)
                else:
                    fold.silent(step)
                if step.own_timeout and elapsed > step.timeout and not step.is_async:
                    logger(step.name).warning(
                        "took {:.1f} s in {}, over its time limit of {:g} s",
                        elapsed,
                        timing.name,
                        step.timeout,
                    )
            except (Exception, SystemExit) as error:
                elapsed = perf_counter() - start
                self._failed(fold, step, error, elapsed, elapsed * 1e6 if measure else 0.0)
            if fold.question is not None:
                yield from self._consult(fold)
        if self._struck:
            self._strikes.forgive(called, fold, event.session_id)
        fold.tally()
        if fold.question is not None:
            yield from self._consult(fold)
        return fold

    def _new_fold(
        self,
        timing: Timing,
        plan: Plan | None,
        event: Event,
        permissions: Permissions | None,
        carried: tuple[Vote, ...] | None,
    ) -> Fold:
        """The fold of a fire: the usual one, or the composition's (``ended`` when no hook may be called)."""
        if self.composition is None:
            return Fold(timing, event, permissions, carried)
        from .composed_fold import ComposedFold
        from .composition import UNCOMPOSED

        if timing.name in UNCOMPOSED:
            return Fold(timing, event, permissions, carried)
        fold = ComposedFold(
            self.composition, timing, event, permissions, carried, watching=self.mode == "monitor"
        )
        skip = _nest.get().skip
        fold.begin(
            [
                step
                for step in (plan.steps if plan is not None else ())
                if step.plugin not in skip and (step.filter is None or not step.filter.why_not(event))
            ]
        )
        return fold

    def _consult(self, fold: Any) -> Generator[Wait, Any, None]:
        """Ask the on_permission_request hooks, then the approver, about a composition's question."""
        from .approval import Resolution, read

        plan = self.plan("on_permission_request")
        if not fold.may_ask or (plan is None and self.approver is None):
            fold.stand()
            return
        try:
            request = fold.request()
        except Exception as error:  # a framework's own view, identity or redaction
            fold.resolve(Resolution(False, code=fold.request_failed, reason=type(error).__name__))
            return
        if plan is not None:
            asked = (yield from self._steps(plan, request, False, None, None, None)).outcome()
            fold.warnings.extend(asked.warnings)
            if asked.decision in ("allow", "deny"):
                answer = Deny(asked.reason, asked.advice, asked.code) if asked.denied else None
                fold.resolve(Resolution(not asked.denied, answer))
                return
        if self.approver is None:
            fold.stand()
            return
        try:
            given = self.approver(request)
            if hasattr(given, "__await__"):
                assert self.composition is not None
                given = yield given, None, self.composition.approval_seconds
        except (Exception, SystemExit) as error:
            logger("approver").warning("the approver failed: {}", describe(error))
            fold.resolve(
                Resolution(
                    False, code="approver_failed", reason=f"the approver failed ({type(error).__name__})"
                )
            )
            return
        fold.resolve(read(given, request.identity))

    def _failed(
        self,
        fold: Fold,
        step: Step,
        error: BaseException,
        elapsed: float,
        micros: float = 0.0,
        *,
        reached: bool = True,
    ) -> None:
        note_failure(fold, step, error, elapsed, micros)
        # That it was not reached is the fault of others.
        if reached and self._strikes.against(step, fold.event.session_id):
            with self._lock:
                self._hot = {}
            words = f"{step.name} failed {STRIKES} times in a row and is set aside for this session"
            fold.warnings.append(words)
            logger(step.name).error(words)

    def _report(self, fold: Fold, out: Outcome, end: float | None = None) -> Generator[Wait, Any, None]:
        """Give the hooks' failures to on_error, once; failing on_error hooks do not recurse.

        ``end``: of the fire, by the monotonic clock.
        """
        if fold.timing.name == "on_error":
            return
        plan = self.plan("on_error")
        if plan is None and (fold.timing.name == "on_outcome" or self.plan("on_outcome") is None):
            return
        event = fold.event
        for failure in fold.failures:
            error = Error._make(
                {
                    "session_id": event.session_id,
                    "agent": event.agent,
                    "agent_id": event.agent_id,
                    "parent_agent": event.parent_agent,
                    "cwd": event.cwd,
                    "turn": event.turn,
                    "time": event.time,
                    "host": event.host,
                    "dry_run": event.dry_run,
                    "error_type": failure.error_type,
                    "message": failure.message,
                    "phase": "hook",
                    "exception": failure.exception,
                    "hook": failure.hook,
                }
            )
            result = yield from self._steps(plan, error, False, _share(end), None, None)
            reported = result.outcome()
            if reported.warnings:
                out.warnings = (*out.warnings, *reported.warnings)
            watchers = self.plan("on_outcome")
            if watchers is not None:
                yield from self._watch(watchers, error, reported, end)

    def _watch(
        self, watchers: Plan, before: Event, out: Outcome, end: float | None
    ) -> Generator[Wait, Any, Fold | None]:
        """Show an outcome to the on_outcome hooks. ``end``: of the fire, by the monotonic clock."""
        seen = self._outcome_event(before, out)
        fold: Fold | None
        if watchers.plain and self._free(watchers):
            fold = self._fire_plain(watchers, seen, None, None)
        else:
            fold = yield from self._steps(watchers, seen, False, _share(end), None, None)
        if fold is not None:
            self._after_watch(watchers, fold, out)
        return fold

    def _outcome_event(self, before: Event, out: Outcome) -> OutcomeEvent:
        return OutcomeEvent._make(
            {
                "session_id": before.session_id,
                "agent": before.agent,
                "agent_id": before.agent_id,
                "parent_agent": before.parent_agent,
                "cwd": before.cwd,
                "turn": before.turn,
                "time": before.time,
                "host": before.host,
                "dry_run": before.dry_run,
                "before": before,
                "after": out.event,
                "outcome": out,
            }
        )

    def _after_watch(self, watchers: Plan, fold: Fold, out: Outcome) -> None:
        """Put an on_outcome hook's warnings and failures into the outcome; a failure may deny."""
        if fold.warnings:
            out.warnings = (*out.warnings, *fold.warnings)
        if not fold.failures:
            return
        out.failures = (*out.failures, *fold.failures)
        out.hooks = (*out.hooks, *(record for record in fold.records if record.error))
        for step in watchers.steps:
            if not step.fails_closed or step.monitor:
                continue
            failure = next((item for item in fold.failures if item.plugin == step.plugin), None)
            timing = self.registry.timings[out.timing]
            if failure is None or not timing.can_deny or out.denied:
                continue
            closing = Fold(timing, out.event)
            closing.close(
                step, f"{step.name} failed and fails closed ({failure.error_type}: {failure.message})"
            )
            denial = closing.outcome()
            out.decision, out.reason, out.by = denial.decision, denial.reason, denial.by
            out.message, out.advice, out.code = denial.message, denial.advice, denial.code
            out.replied, out.reply = False, None

    # -- waiting --------------------------------------------------------------------------------

    def drive(self, steps: Generator[Wait, Any, Any]) -> Any:
        """Run a generator of steps from synchronous code: return its result, or raise what it raises."""
        if self.threaded:
            from .rides import Ride

            return Ride(self, steps).run()
        value: Any = None
        error: BaseException | None = None
        while True:
            try:
                awaitable, _, seconds = steps.throw(error) if error is not None else steps.send(value)
            except StopIteration as stop:
                return stop.value
            value = error = None
            try:
                assert awaitable is not None  # only threaded engines have functions run on threads
                value = self._wait(awaitable, seconds)
            except BaseException as problem:  # thrown into the steps, which say what it means
                error = thrown(problem)

    async def _adrive(self, steps: Generator[Wait, Any, Any]) -> Any:
        """Run a generator of steps from a coroutine."""
        import asyncio

        from .loops import bounded

        value: Any = None
        error: BaseException | None = None
        while True:
            try:
                awaitable, function, seconds = steps.throw(error) if error is not None else steps.send(value)
            except StopIteration as stop:
                return stop.value
            value = error = None
            try:
                if awaitable is None:
                    assert function is not None
                    awaitable = start_thread(function, asyncio.get_running_loop())
                value = await bounded(awaitable, seconds)
            except BaseException as problem:  # as in _drive; cancellation, too
                error = thrown(problem)

    def _wait(self, awaitable: Awaitable[Any], seconds: float | None) -> Any:
        """Run an awaitable on one of the engine's helper loops, from synchronous code."""
        pool = self._pool
        if pool is None:
            from .loops import LoopPool

            with self._lock:
                pool = self._pool = self._pool or LoopPool()
        return pool.run(awaitable, seconds)

    # -- sessions -------------------------------------------------------------------------------

    def session(self, **about: Any) -> Session:
        """Return a new session, a context manager: ``with engine.session(agent="coder") as session``.

        The same object works in ``async with``, where it gives an AsyncSession.

        Parameters:
            about: see ``Session``: session_id, agent, cwd, host, model, provider, source, env, tools,
                transcript_path, persist.
        """
        from .session import Session

        return Session(self, **about)

    def attach(self, session_id: str, **about: Any) -> Session:
        """Return a session from its stored state; no start or end is fired for it.

        Parameters:
            session_id: the session's id; one that nobody stored gives an empty state, for a host whose first
                message may be any.
            about: as for ``session``; used for what the stored state does not know.
        """
        from .session import Session

        return Session(self, session_id=session_id, attached=True, **about)

    def session_state(self, session_id: str) -> SessionState | None:
        """Return the state of a session that this engine runs, or None."""
        return self._sessions.get(session_id)

    def _attached(self, state: SessionState) -> None:
        """Keep a session that another process may have begun, and will perhaps end: the newest ones only."""
        with self._lock:
            self._sessions.pop(state.id, None)
            self._sessions[state.id] = state
            if len(self._sessions) <= MAX_ATTACHED:
                return
            for old in list(self._sessions.values()):
                if old.stored:  # it can be attached again
                    del self._sessions[old.id]
                    self.stores.forget(old.id)
                    return

    def _release(self, state: SessionState) -> None:
        """Let go of a session that ended."""
        if self._sessions.get(state.id) is state:
            del self._sessions[state.id]
        self.stores.forget(state.id)
        if self._strikes.forget(state.id):
            with self._lock:
                self._changed()

    def inject(self, session_id: str, text: str) -> None:
        """Add text to a session's next system prompt."""
        state = self._sessions.get(session_id)
        if state is not None:
            state.add_pending(text)
            return
        with self._lock:
            self._loose.setdefault(session_id, []).append(text)

    def take_injected(self, session_id: str) -> str:
        """Return, once, what was injected for a session that the engine does not run; joined with newlines."""
        with self._lock:
            return "\n".join(self._loose.pop(session_id, ()))

    def services_for(self, plugin: Plugin) -> Mapping[str, Callable[..., Any]]:
        """Return the services as one plugin gets them: calls made through them skip that plugin."""
        return {
            name: through_service(plugin.name, name, function) for name, function in self.services.items()
        }

    # -- life -----------------------------------------------------------------------------------

    def _call_lifecycle(self, record: Plugin, hook: str, seconds: float) -> None:
        for found in record.implementations.values():
            if found["timing"] != hook:
                continue
            context = HookContext(self, record, None)
            function = found["function"]
            result = function(context) if found["options"]["wants"] else function()
            if result is not None and hasattr(result, "__await__"):
                self._wait(result, seconds)

    def close(self) -> None:
        """Call each plugin's on_dispose once, in reverse order, and let go of all resources. Safe to repeat."""
        with self._lock:
            if self.closed:
                return
            self.closed = True
        for record in reversed(self.plugins):
            try:
                self._call_lifecycle(record, "on_dispose", 5.0)
            except (Exception, SystemExit) as error:
                logger(record.hook_name).warning("on_dispose failed: {}", describe(error))
        if self._pool is not None:
            self._pool.close()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _share(end: float | None) -> float | None:
    """Return the seconds that those who look on have until the end of a fire, by the monotonic clock."""
    return None if end is None else max(end - monotonic(), 0.0) * WATCH_SHARE


def _log_overruled(out: Outcome) -> None:
    for name, decision, reason in out.overruled:
        logger(name).warning(
            "{} said {} in {} ({}); the user's always_allow set it aside", name, decision, out.timing, reason
        )
