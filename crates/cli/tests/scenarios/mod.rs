//! End-to-end scenarios, the same against the embedded API server and against a real control plane.
//!
//! Each starts the program, changes Git or the cluster from outside, and inspects only what the
//! Kubernetes API shows. Those in `real` need `TIPHYS_TEST_REAL=1` and a `KUBECONFIG`: `make
//! test-real`.

pub mod admin;
mod bad;
mod catalog;
mod catalog_server;
mod charts;
mod deletion;
mod dex;
mod disturbed;
mod dropin;
mod good;
mod hooks;
mod limits;
mod local_folder;
mod outage;
mod pods;
mod real_dex;
mod renderer;
mod rollout;
mod rules;
mod server;
mod sets;
mod starts;
mod startup;
mod takeover;
mod verbs;
pub mod world;

/// Each scenario against both kinds of cluster, or the real one alone.
macro_rules! scenarios {
    (both: $($module:ident :: $name:ident),*; real: $($real_module:ident :: $real_name:ident),* $(,)?) => {
        mod embedded {
            $(#[test] fn $name() {
                crate::scenarios::world::World::embedded(stringify!($name)).iter_mut().for_each(crate::scenarios::$module::$name);
            })*
        }
        mod real {
            $(#[test] fn $name() {
                crate::scenarios::world::World::real(stringify!($name)).iter_mut().for_each(crate::scenarios::$module::$name);
            })*
            $(#[test] fn $real_name() {
                crate::scenarios::world::World::real(stringify!($real_name)).iter_mut().for_each(crate::scenarios::$real_module::$real_name);
            })*
        }
    };
}

scenarios!(
    both:
    good::examples_become_well,
    good::a_commit_reaches_the_cluster,
    good::a_manual_edit_is_healed,
    good::without_prune_a_deleted_file_stays,
    good::hooks_run_once_and_waves_in_order,
    good::deleting_an_application_takes_its_objects,
    good::an_application_set_deploys_each_folder,
    good::a_dry_source_is_hydrated_and_synced,
    bad::bad_sources_are_named_and_cost_nothing,
    bad::bad_manifests_are_named_and_cost_nothing,
    bad::projects_are_obeyed,
    charts::a_chart_of_a_private_repository_follows_its_versions,
    catalog::chart_repositories_are_read_and_removed,
    rollout::a_set_of_hundreds_is_rolled_out_in_steps,
    rules::respected_differences_outlive_a_sync,
    rules::the_api_server_says_what_differs,
    rules::sync_windows_hold_syncs_back,
    rules::a_sync_that_takes_too_long_is_ended,
    rules::orphans_are_counted,
    deletion::hooks_run_before_and_after_a_deletion,
    deletion::an_application_goes_while_its_hook_runs,
    disturbed::a_definition_and_its_object_come_and_go,
    hooks::a_hook_that_its_ttl_deletes_is_done,
    hooks::a_hook_that_somebody_made_anew_is_not_waited_for,
    hooks::a_resource_that_becomes_a_hook_is_replaced,
    limits::a_wave_that_takes_too_long_is_rolled_back,
    limits::a_wave_that_takes_too_long_is_tried_again,
    limits::a_newer_revision_takes_the_place_of_a_sync,
    limits::a_dry_run_tells_its_plan,
    admin::what_is_exported_can_be_imported,
    verbs::commands_of_administrators_read_and_change_the_cluster,
    verbs::commands_need_no_server,
    admin::an_installation_works_with_the_rights_it_installs,
    dropin::the_controllers_place_is_taken,
    dropin::the_set_controllers_place_is_taken,
    dropin::shards_are_shared_as_argo_cds_are,
    dex::dex_runs_with_what_the_settings_say,
    real_dex::users_sign_in_through_a_real_dex,
    server::the_servers_place_is_taken,
    takeover::a_replica_that_dies_is_taken_over;
    // Scenarios for a real cluster only.
    real:
    disturbed::an_api_server_restarts_in_mid_sync,
    disturbed::an_api_server_gets_a_new_certificate,
    disturbed::two_clusters_and_one_goes_away,
    catalog::jobs_are_made_for_chart_repositories,
    pods::a_server_is_reached_through_its_pod,
    pods::a_shell_runs_in_a_container,
);
