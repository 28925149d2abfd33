//! Rules about the extension for apps: user interfaces that a server offers and a host shows.

rules! {
    APPS "Apps"
    APP_01 "APP-01" Must Client ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "A client that shows apps declares them with mimeTypes, without sessions on each request.";
    APP_02 "APP-02" Should Server ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "A server looks at this declaration before it offers tools made for apps.";
    APP_03 "APP-03" Must Server ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "URIs of apps have the scheme ui.";
    APP_04 "APP-04" Must Server ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "The contents of an app have the media type text/html;profile=mcp-app.";
    APP_05 "APP-05" Must Server ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "An app is an HTML5 document, as text or blob.";
    APP_06 "APP-06" Must Server ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "resourceUri of a tool can be read from the same server.";
    APP_07 "APP-07" May Server ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "Apps need not be among the listed resources.";
    APP_08 "APP-08" Must Server ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "visibility has model and app alone; without it both may use a tool.";
    APP_09 "APP-09" Must Server ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "A tool with an app has content that is useful without it.";
    APP_10 "APP-10" Should Server ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "A tool names its app in _meta.ui and not in the older flat key.";
    APP_11 "APP-11" Must Server ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "csp has lists of origins by their four names; a wildcard stands for subdomains.";
    APP_12 "APP-12" Should Server ABCDE "ext-apps/specification/draft/apps.mdx"
        "_meta.ui of an app is on its contents; its list entry has defaults.";
    APP_13 "APP-13" Must Host ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "Hosts fetch apps by resources/read.";
    APP_14 "APP-14" Must Host ABCDE "ext-apps/specification/draft/apps.mdx"
        "Hosts look for _meta.ui on the contents first, then on the list entry.";
    APP_15 "APP-15" Must Host ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "The model is offered the tools that are visible to it.";
    APP_16 "APP-16" Must Host ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "A view calls tools of its own server that are visible to apps, and no others.";
    APP_17 "APP-17" Must Host ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "The content security policy is made of the declared domains.";
    APP_18 "APP-18" Must Host ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "Without csp the fixed default policy applies.";
    APP_19 "APP-19" Must Host ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "Domains that were not declared are blocked.";
    APP_20 "APP-20" Should Host ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "Policies are logged, and external domains warned of.";
    APP_21 "APP-21" Must Host ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "Views are shown in sandboxed frames.";
    APP_22 "APP-22" Must Host ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "A host on the web has its sandbox on another origin.";
    APP_23 "APP-23" Must Sandbox ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "A sandbox says that it is ready, and gets the app then.";
    APP_24 "APP-24" Must Sandbox ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "A sandbox passes on all messages but its own, as they are.";
    APP_25 "APP-25" Should Sandbox ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "A sandbox makes no requests.";
    APP_26 "APP-26" Must Sandbox ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "A sandbox enforces the policy with its defaults for objects, frames and base URIs.";
    APP_27 "APP-27" Must View ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "A view begins with ui/initialize and its capabilities.";
    APP_28 "APP-28" Must View ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "A view confirms the answer by ui/notifications/initialized.";
    APP_29 "APP-29" Must Host ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "A host sends nothing to a view that has not confirmed.";
    APP_30 "APP-30" Must Host ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "The answer to ui/initialize has version, host, capabilities and context.";
    APP_31 "APP-31" Must Host ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "A view gets the complete arguments of its call once.";
    APP_32 "APP-32" Must Host ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "A view gets the arguments before the result.";
    APP_33 "APP-33" May Host ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "Partial arguments may come before the complete ones, never behind.";
    APP_34 "APP-34" Must View ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "Partial arguments decide nothing.";
    APP_35 "APP-35" Must Host ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "A view gets the result of its call as it is.";
    APP_36 "APP-36" Must Host ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "A view is told that its call was cancelled.";
    APP_37 "APP-37" Must Host ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "A view is told before it is removed.";
    APP_38 "APP-38" Must View ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "A view answers ui/resource-teardown.";
    APP_39 "APP-39" Must View ABCDE "ext-apps/specification/draft/apps.mdx"
        "A view samples only where the host declares it.";
    APP_40 "APP-40" Should View ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "A view uses what the host declares.";
    APP_41 "APP-41" Should View ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "A view tells its new size.";
    APP_42 "APP-42" Must Host ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "A host follows the size of a view where it left it open.";
    APP_43 "APP-43" Must View ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "A view declares all its display modes.";
    APP_44 "APP-44" Must View ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "A view asks for display modes that the host has, and takes the one it gets.";
    APP_45 "APP-45" Must Host ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "A host shows a view in modes that the view declares.";
    APP_46 "APP-46" Must Host ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "The answer to ui/request-display-mode is the mode that is shown.";
    APP_47 "APP-47" May Host ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "A host may send the part of its context that has changed.";
    APP_48 "APP-48" Should Host ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "A link of a view opens outside of it, or is refused with -32000.";
    APP_49 "APP-49" Should Host ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "A message of a view joins the conversation.";
    APP_50 "APP-50" Should Host ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "The newest context of a view counts from the next turn.";
    APP_51 "APP-51" Should View ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "A view works where permissions are not granted.";
    APP_52 "APP-52" Note Host ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "A host checks messages of views and their sender.";
    APP_53 "APP-53" Should Host ABCDE "ext-apps/specification/2026-01-26/apps.mdx"
        "What a host forwards from a view is MCP, never one of the ui methods.";
    APP_54 "APP-54" Should Host ABCDE "ext-apps/specification/draft/apps.mdx"
        "A download is confirmed and gets a safe name.";
    APP_55 "APP-55" Must View ABCDE "ext-apps/specification/draft/apps.mdx"
        "A view that declares tools lists and runs them.";
    APP_56 "APP-56" Must Host ABCDE "ext-apps/specification/draft/apps.mdx"
        "A view that asks to be removed is removed in the usual way.";
    APP_57 "APP-57" Must Host ABCDE "ext-apps/specification/draft/apps.mdx"
        "Tools of a view end with it.";
    APP_58 "APP-58" Should Host ABCDE "ext-apps/specification/draft/apps.mdx"
        "Tools of a view are named after it, confirmed, limited and logged.";
    APP_59 "APP-59" Should View ABCDE "ext-apps/specification/draft/apps.mdx"
        "A view leaves long work to the server, as a task.";
}
