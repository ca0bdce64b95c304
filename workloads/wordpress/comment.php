<?php
// Replaces WordPress's wp-comments-post.php, as index.php replaces its index.php. Only the place of the configuration differs.
require getenv( 'TARE_WORK' ) . '/site.php';
// All visitors have the same address, as behind a proxy. WordPress would refuse the second comment for 15 seconds.
remove_filter( 'comment_flood_filter', 'wp_throttle_comment_flood' );
nocache_headers();
$comment = wp_handle_comment_submission( wp_unslash( $_POST ) );
if ( is_wp_error( $comment ) ) {
	wp_die( $comment->get_error_message(), '', array( 'response' => (int) $comment->get_error_data() ) );
}
do_action( 'set_comment_cookies', $comment, wp_get_current_user(), false );
// A new author's comment waits for approval (WordPress's default). Only the author sees it.
wp_safe_redirect( add_query_arg(
	array( 'unapproved' => $comment->comment_ID, 'moderation-hash' => wp_hash( $comment->comment_date_gmt ) ),
	get_comment_link( $comment )
) );
